#include <filesystem>

#include "engine/hello.h"
#include "engine/stepper.h"
#include "engine/trainer.h"
#include "engine/training_job.h"

namespace batchwright::engine {

void dump(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(false, stepper));
  const std::filesystem::path folder = job.run_folder;
  std::filesystem::create_directories(folder);
  const std::int64_t total = training.total_steps();
  const Cut cut = training.cut();
  const auto first = training.sampler.window(0);
  std::vector<std::vector<float>> by_row;
  stepper.evaluate(first, cut, &by_row);
  std::vector<float> logits;
  for (const std::vector<float>& row : by_row) logits.insert(logits.end(), row.begin(), row.end());
  const std::int64_t width = training.model->network->width();
  const std::vector<model::TensorToWrite> logit_tensor = {
      {"logits", {static_cast<std::int64_t>(logits.size()) / width, width}, logits}};
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
