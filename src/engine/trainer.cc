#include "engine/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/hello.h"
#include "engine/replicas.h"
#include "engine/step_log.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

constexpr double kLeastLossScale = 1e-4;    // as fairseq: below it no gradient of a sound training overflows
constexpr std::int64_t kTracedSteps = 100;  // more than a viewer shows with pleasure

Json evaluation_json(const Evaluation& evaluation) {
  if (evaluation.examples == 0) return nullptr;
  Json result = {{"examples", evaluation.examples}, {"targets", evaluation.targets}};
  for (const auto& [name, value] : evaluation.metrics) result[name] = value;
  result["loss"] = evaluation.loss;
  result["seconds"] = evaluation.seconds;
  return result;
}

// Parts of the model that start from random numbers; a LoRA adapter always does, so it is not named.
std::vector<std::string> fresh_modules(const LoadedModel& model) {
  std::vector<std::string> result;
  for (const std::string& name : model.initialised) {
    if (name.find(".lora_") == std::string::npos) result.push_back(name);
  }
  return result;
}

// One training from its first or resumed step to the saved model. With a group every rank runs it alike; rank
// 0 alone reads checkpoints, writes and reports.
class Training {
 public:
  Training(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group)
      : job_(job),
        channel_(channel),
        group_(group),
        training_(job),
        stepper_(*training_.model, training_.tokens, job.options, group),
        folder_(job.run_folder),
        fresh_(fresh_modules(*training_.model)),
        checkpoints_(folder_, job, training_.tokens.content_id(), arithmetic()),
        total_(training_.total_steps()) {
    channel_.send(hello(false, stepper_));
  }

  void run() {
    if (!fresh_.empty())
      say(fmt::format("not in the checkpoint, newly initialised: {}", fmt::join(fresh_, ", ")));
    if (group_ != nullptr) check_same_weights(*group_, training_.model->parameters, *training_.model->ops);
    const std::int64_t first = resume();
    if (leads()) log_.emplace(folder_ / "steps.jsonl", first);
    if (!job_.trace_file.empty() && leads()) {
      write_trace();  // a place that cannot be written is found out before the training, not after it
      stepper_.record_into(&trace_);
    }
    bool interrupted = false;
    steps_done_ = first;
    while (steps_done_ < total_ && !interrupted) {
      const bool stop = channel_.stop_requested();
      interrupted = group_ != nullptr ? group_->any(stop) : stop;
      if (!interrupted) step(first);
    }
    if (interrupted && steps_done_ > first) save();
    finish(interrupted);
  }

 private:
  bool leads() const { return stepper_.rank() == 0; }

  void say(const std::string& text) {
    if (leads()) channel_.send(run::Note{.text = text, .fraction = std::nullopt});
  }

  // What decides the last bits of every sum: another of these, and a resumed run may differ in them.
  std::string arithmetic() const {
    return fmt::format("{}, {} threads, {}, libtorch {}", stepper_.device_name(), stepper_.threads(),
                       run::to_string(job_.split), torch_version());
  }

  std::int64_t resume() {
    std::optional<Checkpoints::Resumed> resumed;
    if (leads()) {
      const ProcessGroup::Busy reading(group_);
      resumed = checkpoints_.resume(*training_.model, stepper_.optimizer(), stepper_.loss_scaler());
    }
    if (resumed) {
      for (const std::string& why : resumed->damaged) say("warning: set aside as .damaged: " + why);
      say(fmt::format(
          "going on after step {}{}", resumed->steps_done,
          resumed->same_bits ? "" : ", on another split, threads or machine: last bits may differ"));
    }
    const std::int64_t done = resumed ? resumed->steps_done : 0;
    return group_ == nullptr ? done
                             : share_state(*group_, training_.model->parameters, stepper_.optimizer(),
                                           stepper_.loss_scaler(), done);
  }

  void step(std::int64_t first) {
    // A skipped step moves no weight, so it does not advance the schedule either.
    const double rate = learning_rate_at(job_.options, stepper_.optimizer().steps_done(), total_);
    const auto outcome =
        stepper_.step(training_.sampler.window(steps_done_), training_.cut(), steps_done_, rate);
    check_finite(outcome);
    ++steps_done_;
    if (leads()) {
      const run::StepReport report = whole_report_of(outcome, steps_done_, rate, stepper_.ranks());
      log_->write(report);
      channel_.send(report);
      if (steps_done_ - first == kTracedSteps) stepper_.record_into(nullptr);
    }
    const bool due = job_.options.save_every > 0 && steps_done_ % job_.options.save_every == 0;
    if (due && steps_done_ < total_) save();
  }

  void check_finite(const StepOutcome& outcome) const {
    const std::string where = fmt::format("step {}", steps_done_ + 1);
    if (!outcome.skipped && !(std::isfinite(outcome.loss) && std::isfinite(outcome.grad_norm))) {
      throw Error(ErrorKind::No, where, "the loss or the gradient is not finite",
                  "Lower --learning-rate, or add --warmup-steps");
    }
    if (outcome.skipped && *outcome.loss_scale < kLeastLossScale) {
      throw Error(ErrorKind::No, where,
                  fmt::format("the gradient is not finite even at a loss scale of {}", *outcome.loss_scale),
                  "Use --precision bf16, or lower --learning-rate");
    }
  }

  void save() {
    if (!leads()) return;
    const ProcessGroup::Busy writing(group_);
    checkpoints_.save(*training_.model, stepper_.optimizer(), stepper_.loss_scaler().state(), steps_done_);
  }

  void write_trace() const { write_file_atomic(job_.trace_file, trace_.to_chrome_json()); }

  // Null when nothing is held out, or when its rows do not fit in memory: what was trained is not lost with
  // them.
  Json evaluate() {
    if (training_.rows.held_out.empty()) return nullptr;
    say("evaluating");
    try {
      return evaluation_json(stepper_.evaluate(training_.rows.held_out, training_.cut()));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::OutOfMemory) throw;
      return {{"error", e.what()}};
    }
  }

  void finish(bool interrupted) {
    const std::filesystem::path saved = folder_ / "model";
    if (leads()) {  // first: a kill in the evaluation must not cost the training
      const ProcessGroup::Busy writing(group_);
      save_model(*training_.model, job_.options, saved);
      remove_torn_files(saved);
    }
    const Json evaluation = evaluate();
    if (!leads()) return;
    const ProcessGroup::Busy writing(group_);
    const StepLog::Totals& totals = log_->totals();
    const Json summary = {{"version", 1},
                          {"task", data::task_name(training_.tokens.task())},
                          {"split", run::to_string(job_.split)},
                          {"steps", totals.steps},
                          {"planned_steps", total_},
                          {"skipped_steps", totals.skipped},
                          {"interrupted", interrupted},
                          {"examples", totals.examples},
                          {"tokens", totals.tokens},
                          {"padded_tokens", totals.padded_tokens},
                          {"seconds", totals.seconds},
                          {"final_loss", totals.last_loss},
                          {"peak_bytes", totals.peak_bytes},
                          {"evaluation", evaluation},
                          {"newly_initialised", fresh_},
                          {"model_folder", saved.string()}};
    write_file_atomic(folder_ / "summary.json", summary.dump(2) + "\n");
    if (!job_.trace_file.empty()) write_trace();
    channel_.send(run::Done{.result = summary});
  }

  const run::EngineJob& job_;
  run::WorkerChannel& channel_;
  ProcessGroup* group_;
  TrainingJob training_;
  Stepper stepper_;
  std::filesystem::path folder_;
  std::vector<std::string> fresh_;
  Checkpoints checkpoints_;
  std::int64_t total_, steps_done_ = 0;
  std::optional<StepLog> log_;  // rank 0's
  profile::Trace trace_;
};

}  // namespace

void train(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group) {
  Training(job, channel, group).run();
}

}  // namespace batchwright::engine
