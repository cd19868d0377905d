#include "engine/trials.h"

#include "base/error.h"
#include "engine/hello.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

Cut cut_of(const run::RunSplit& request, const run::TrainingOptions& options) {
  if (request.micro_tokens == 0 && (request.micro < 1 || request.micro > options.effective_batch)) {
    throw Error(ErrorKind::Usage, "split", "micro-batch must lie between 1 and the effective batch");
  }
  return {.micro_batch = request.micro,
          .micro_tokens = request.micro_tokens,
          .layout = layout_of(request.layout),
          .checkpointing = parse_checkpointing(request.checkpointing)};
}

// False when the tuner asked to stop in the middle.
bool run_trial(TrainingJob& training, Stepper& stepper, const run::RunSplit& request,
               run::WorkerChannel& channel) {
  const run::TrainingOptions& options = training.job.options;
  const Cut cut = cut_of(request, options);
  stepper.release_activations();
  reset_peak_bytes();
  std::vector<std::uint32_t> longest;
  if (request.batch == "longest") {
    longest = data::longest_rows(training.tokens, training.rows.train, options.effective_batch);
  }
  for (std::int64_t i = 0; i < request.steps; ++i) {
    if (channel.stop_requested()) return false;
    const std::int64_t window = request.first_step + i;
    const auto rows = longest.empty() ? training.sampler.window(window) : longest;
    channel.send(
        report_of(stepper.step(rows, cut, window, options.learning_rate), i + 1, options.learning_rate));
  }
  return true;
}

}  // namespace

void serve_trials(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(true, stepper));
  while (true) {
    const run::Message message = channel.receive();
    const auto* request = std::get_if<run::RunSplit>(&message);
    if (request == nullptr) return;  // stop, or the tuner is gone
    try {
      if (!run_trial(training, stepper, *request, channel)) return;
      channel.send(run::Done{});
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::Interrupted) throw;
      const bool memory = e.kind() == ErrorKind::OutOfMemory;
      channel.send(run::Failed{.kind = memory ? "out_of_memory" : "rejected",
                               .message = e.what(),
                               .peak_bytes = memory_counts().peak_bytes});
    }
  }
}

}  // namespace batchwright::engine
