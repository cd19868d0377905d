#include "engine/trials.h"

#include "base/error.h"
#include "engine/hello.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

Cut cut_of(const run::RunSplit& request, const run::TrainingOptions& options, int ranks) {
  const std::int64_t share = (options.effective_batch + ranks - 1) / ranks;
  const bool within = request.micro >= 1 && request.accum >= 1 && request.micro <= share &&
                      request.accum <= share / request.micro;
  if (request.micro_tokens == 0 && !within) {
    throw Error(ErrorKind::Usage, "split",
                "micro-batch times accumulation steps must lie within the effective batch");
  }
  return {.micro_batch = request.micro,
          .micro_tokens = request.micro_tokens,
          .layout = layout_of(request.layout),
          .checkpointing = parse_checkpointing(request.checkpointing)};
}

// The examples of one step: a split says how many, and may ask for fewer than an effective batch (a memory
// probe needs no more than its micro-batch).
std::int64_t rows_of_step(const TrainingJob& training, const run::RunSplit& request, const Stepper& stepper) {
  return request.micro_tokens > 0 ? training.job.options.effective_batch
                                  : request.micro * request.accum * stepper.ranks();
}

// How many rows of a window, and of an epoch's last one, fall to a rank.
std::vector<std::int64_t> windows_of(const TrainingJob& training, const run::RunSplit& request,
                                     const Stepper& stepper) {
  const auto tail =
      static_cast<std::int64_t>(training.rows.train.size()) % training.job.options.effective_batch;
  std::vector<std::int64_t> windows;
  for (const std::int64_t whole : {rows_of_step(training, request, stepper), tail}) {
    windows.push_back((whole + stepper.ranks() - 1) / stepper.ranks());
    windows.push_back(whole / stepper.ranks());
  }
  return windows;
}

// So that the peak of a trial is that of a whole training with its cut, whatever examples it happens to see.
// Where memory does not hold it, the steps say whether they fit; a token cut's probe is this question itself.
void reserve_for_heaviest(TrainingJob& training, Stepper& stepper, const run::RunSplit& request,
                          const Cut& cut) {
  stepper.release_activations();
  reset_peak_bytes();
  try {
    for (const auto& rows : heaviest_rows(training.tokens, training.rows.train, cut,
                                          windows_of(training, request, stepper), stepper.threads()))
      stepper.reserve_for(rows, cut);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::OutOfMemory) throw;
    if (request.micro_tokens > 0 && request.batch == "longest" && stepper.ranks() == 1) throw;
    stepper.release_activations();
    reset_peak_bytes();
  }
}

std::vector<std::uint32_t> rows_of(TrainingJob& training, const run::RunSplit& request, std::int64_t window,
                                   const Stepper& stepper) {
  const std::int64_t count = rows_of_step(training, request, stepper);
  if (request.batch == "longest") return data::longest_rows(training.tokens, training.rows.train, count);
  auto rows = training.sampler.window(window);
  if (static_cast<std::int64_t>(rows.size()) > count) rows.resize(static_cast<std::size_t>(count));
  return rows;
}

// False when the tuner asked to stop in the middle.
bool run_trial(TrainingJob& training, Stepper& stepper, const run::RunSplit& request,
               run::WorkerChannel& channel, ProcessGroup* group) {
  const double learning_rate = training.job.options.learning_rate;
  const Cut cut = cut_of(request, training.job.options, stepper.ranks());
  reserve_for_heaviest(training, stepper, request, cut);
  for (std::int64_t i = 0; i < request.steps; ++i) {
    const bool stop = channel.stop_requested();
    if (group != nullptr ? group->any(stop) : stop) return false;
    const std::int64_t window = request.first_step + i;
    const auto rows = rows_of(training, request, window, stepper);
    const StepOutcome outcome = stepper.step(rows, cut, window, learning_rate);
    if (stepper.rank() == 0) channel.send(report_of(outcome, i + 1, learning_rate));
  }
  return true;
}

// The tuner speaks to rank 0 only.
run::Message next_order(run::WorkerChannel& channel, ProcessGroup* group) {
  if (group == nullptr) return channel.receive();
  std::string line;
  if (group->leads()) {
    const ProcessGroup::Busy between_trials(group);
    line = run::to_line(channel.receive());
  }
  return run::parse_message(group->broadcast(line));
}

}  // namespace

void serve_trials(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options, group);
  channel.send(hello(true, stepper));
  while (true) {
    const run::Message message = next_order(channel, group);
    const auto* request = std::get_if<run::RunSplit>(&message);
    if (request == nullptr) return;  // stop, or the tuner is gone
    try {
      if (!run_trial(training, stepper, *request, channel, group)) return;
      if (stepper.rank() == 0) channel.send(run::Done{});
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Interrupted) throw;
      if (stepper.rank() != 0) continue;  // all ranks end a trial together
      const bool memory = e.kind() == ErrorKind::OutOfMemory;
      channel.send(run::Failed{.kind = memory ? "out_of_memory" : "rejected",
                               .message = e.what(),
                               .peak_bytes = memory_counts().peak_bytes});
    }
  }
}

}  // namespace batchwright::engine
