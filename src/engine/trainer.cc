#include "engine/trainer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "engine/checkpoint.h"
#include "engine/hello.h"
#include "engine/step_log.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

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

// What decides the last bits of every sum: another of these, and a resumed run may differ in them.
std::string arithmetic_of(const Stepper& stepper) {
  return fmt::format("{}, {} threads, libtorch {}", stepper.device_name(), stepper.threads(),
                     torch_version());
}

}  // namespace

void train(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(false, stepper));
  const std::filesystem::path folder = job.run_folder;
  const std::vector<std::string> fresh = fresh_modules(*training.model);
  if (!fresh.empty()) {
    channel.send(
        run::Note{.text = fmt::format("not in the checkpoint, newly initialised: {}", fmt::join(fresh, ", ")),
                  .fraction = std::nullopt});
  }
  const Checkpoints checkpoints(folder, job, training.tokens.content_id(), arithmetic_of(stepper));
  const auto resumed = checkpoints.resume(*training.model, stepper.optimizer());
  if (resumed.has_value()) {
    channel.send(run::Note{
        .text = fmt::format(
            "going on after step {}{}", resumed->steps_done,
            resumed->same_bits ? "" : ", on other threads or another machine: last bits may differ"),
        .fraction = std::nullopt});
  }
  const std::int64_t first = resumed.has_value() ? resumed->steps_done : 0;
  StepLog log(folder / "steps.jsonl", first);
  const std::int64_t total = training.total_steps();
  const Cut cut = training.cut();
  bool interrupted = false;
  profile::Trace trace;
  if (!job.trace_file.empty()) stepper.record_into(&trace);
  for (std::int64_t step = first; step < total; ++step) {
    if (channel.stop_requested()) {
      interrupted = true;
      break;
    }
    const double rate = learning_rate_at(job.options, step, total);
    const auto outcome = stepper.step(training.sampler.window(step), cut, step, rate);
    if (!std::isfinite(outcome.loss) || !std::isfinite(outcome.grad_norm)) {
      throw Error(ErrorKind::No, fmt::format("step {}", step + 1), "the loss or the gradient is not finite",
                  "Lower --learning-rate, or add --warmup-steps");
    }
    const run::StepReport report = report_of(outcome, step + 1, rate);
    log.write(report);
    channel.send(report);
    const bool due = job.options.save_every > 0 && (step + 1) % job.options.save_every == 0;
    if (step + 1 - first == kTracedSteps) stepper.record_into(nullptr);
    if (due && step + 1 < total) checkpoints.save(*training.model, stepper.optimizer(), step + 1);
  }
  if (!job.trace_file.empty()) write_file_atomic(job.trace_file, trace.to_chrome_json());
  if (interrupted && log.totals().steps > first) {
    checkpoints.save(*training.model, stepper.optimizer(), log.totals().steps);
  }
  Evaluation evaluation;
  if (!training.rows.held_out.empty()) {
    channel.send(run::Note{.text = "evaluating", .fraction = std::nullopt});
    evaluation = stepper.evaluate(training.rows.held_out, cut);
  }
  const std::filesystem::path saved = folder / "model";
  save_model(*training.model, job.options, saved);
  const StepLog::Totals& totals = log.totals();
  const Json summary = {{"version", 1},
                        {"task", data::task_name(training.tokens.task())},
                        {"split", run::to_string(job.split)},
                        {"steps", totals.steps},
                        {"planned_steps", total},
                        {"interrupted", interrupted},
                        {"examples", totals.examples},
                        {"tokens", totals.tokens},
                        {"padded_tokens", totals.padded_tokens},
                        {"seconds", totals.seconds},
                        {"final_loss", totals.last_loss},
                        {"peak_bytes", totals.peak_bytes},
                        {"evaluation", evaluation_json(evaluation)},
                        {"newly_initialised", fresh},
                        {"model_folder", saved.string()}};
  write_file_atomic(folder / "summary.json", summary.dump(2) + "\n");
  channel.send(run::Done{.result = summary});
}

}  // namespace batchwright::engine
