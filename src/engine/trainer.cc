#include "engine/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "engine/hello.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

// The growing steps.jsonl: a line is on its way to the disk before the next step starts.
class StepLog {
 public:
  explicit StepLog(const std::filesystem::path& path) : path_(path), file_(std::fopen(path.c_str(), "ae")) {
    if (file_ == nullptr) throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written");
  }
  ~StepLog() { std::fclose(file_); }
  StepLog(const StepLog&) = delete;

  void write(const run::StepReport& report) {
    const Json line = {{"step", report.step},
                       {"loss", *report.loss},
                       {"learning_rate", *report.learning_rate},
                       {"grad_norm", *report.grad_norm},
                       {"examples", report.examples},
                       {"tokens", report.tokens},
                       {"padded_tokens", report.padded_tokens},
                       {"micro_steps", report.micro_steps},
                       {"seconds", report.seconds},
                       {"phases", report.phases},
                       {"peak_bytes", *report.peak_bytes}};
    if (std::fputs((dump_line(line) + "\n").c_str(), file_) < 0 || std::fflush(file_) != 0) {
      throw Error(ErrorKind::InvalidInput, path_.string(), "cannot be written (is the disk full?)");
    }
  }

 private:
  std::filesystem::path path_;
  std::FILE* file_;
};

struct Totals {
  std::int64_t steps = 0, examples = 0, tokens = 0, padded_tokens = 0, peak_bytes = 0;
  double seconds = 0, last_loss = 0;

  void add(const run::StepReport& report) {
    ++steps;
    examples += report.examples;
    tokens += report.tokens;
    padded_tokens += report.padded_tokens;
    peak_bytes = std::max(peak_bytes, *report.peak_bytes);
    seconds += report.seconds;
    last_loss = *report.loss;
  }
};

Json evaluation_json(const Evaluation& evaluation) {
  if (evaluation.examples == 0) return nullptr;
  return {{"examples", evaluation.examples},
          {"accuracy", static_cast<double>(evaluation.correct) / static_cast<double>(evaluation.examples)},
          {"loss", evaluation.loss},
          {"seconds", evaluation.seconds}};
}

}  // namespace

void train(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(false, stepper));
  const std::filesystem::path folder = job.run_folder;
  std::filesystem::create_directories(folder);
  StepLog log(folder / "steps.jsonl");
  const std::int64_t total = training.total_steps();
  const Cut cut = training.cut();
  Totals totals;
  bool interrupted = false;
  for (std::int64_t step = 0; step < total; ++step) {
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
    totals.add(report);
    channel.send(report);
  }
  Evaluation evaluation;
  if (!training.rows.held_out.empty()) {
    channel.send(run::Note{.text = "evaluating", .fraction = std::nullopt});
    evaluation = stepper.evaluate(training.rows.held_out, cut);
  }
  const std::filesystem::path saved = folder / "model";
  save_model(*training.model, job.options, saved);
  const Json summary = {{"version", 1},
                        {"split", run::to_string(job.split)},
                        {"steps", totals.steps},
                        {"planned_steps", total},
                        {"interrupted", interrupted},
                        {"examples", totals.examples},
                        {"tokens", totals.tokens},
                        {"padded_tokens", totals.padded_tokens},
                        {"training_seconds", totals.seconds},
                        {"final_loss", totals.last_loss},
                        {"peak_bytes", totals.peak_bytes},
                        {"evaluation", evaluation_json(evaluation)},
                        {"model_folder", saved.string()}};
  write_file_atomic(folder / "summary.json", summary.dump(2) + "\n");
  channel.send(run::Done{.result = summary});
}

void dump(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(false, stepper));
  const std::filesystem::path folder = job.run_folder;
  std::filesystem::create_directories(folder);
  const std::int64_t total = training.total_steps();
  const Cut cut = training.cut();
  const auto first = training.sampler.window(0);
  std::vector<float> logits;
  stepper.evaluate(first, cut, &logits);
  const auto size = static_cast<std::int64_t>(first.size());
  const std::vector<model::TensorToWrite> logit_tensor = {
      {"logits", {size, training.model->classifier->classes()}, logits}};
  model::write_safetensors(folder / "logits.safetensors", logit_tensor);

  stepper.accumulate(first, cut, 0);
  const auto gradient = stepper.sum_gradients();
  std::vector<model::TensorToWrite> tensors;
  for (const Parameter& p : training.model->parameters.all()) {
    if (!p.trainable) continue;
    tensors.push_back(
        {saved_name(p, job.options), p.shape,
         std::span(gradient).subspan(static_cast<std::size_t>(p.offset), static_cast<std::size_t>(p.count))});
  }
  model::write_safetensors(folder / "gradients.safetensors", tensors);

  Json windows = Json::array(), losses = Json::array(), norms = Json::array();
  for (std::int64_t step = 0; step < total; ++step) {
    windows.push_back(training.sampler.window(step));
    const auto outcome =
        stepper.step(training.sampler.window(step), cut, step, learning_rate_at(job.options, step, total));
    losses.push_back(outcome.loss);
    norms.push_back(outcome.grad_norm);
  }
  const Json document = {{"version", 1},
                         {"losses", losses},
                         {"gradient_norms", norms},
                         {"windows", windows},
                         {"initialised", training.model->initialised}};
  write_file_atomic(folder / "dump.json", dump_line(document) + "\n");
  channel.send(run::Done{.result = {{"steps", total}}});
}

}  // namespace batchwright::engine
