#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/network.h"
#include "engine/parameters.h"
#include "model/config.h"
#include "run/options.h"

namespace batchwright::engine {

// A model in memory, ready to train: shape, weights, and the mathematics over them.
struct LoadedModel {
  std::unique_ptr<Ops> ops;  // the device that holds the weights; outlives them
  std::filesystem::path folder;
  model::ModelConfig config;
  data::Task task = data::Task::SequenceClassification;
  std::vector<std::string> label_names;  // of a classifier
  Parameters parameters;
  std::unique_ptr<Network> network;
  std::vector<std::string> initialised;  // parameters that the checkpoint did not hold

  std::vector<float> values(ParameterId id) const;  // a parameter, copied to the host
  void set_values(ParameterId id, std::span<const float> values) const;
};

// Reads config.json and the weights, adds a head and adapters. What the checkpoint lacks (a fresh head, LoRA)
// is drawn from `options.seed`: normal(0, initializer_range) for weights as Transformers,
// uniform(+-1/sqrt(in)) for LoRA's A and zero for B as PEFT. `adapter_folder`, if not empty, holds an adapter
// in PEFT's layout to start from. Throws NotFound, InvalidInput, Unsupported or OutOfMemory.
std::unique_ptr<LoadedModel> load_model(const std::filesystem::path& folder,
                                        const run::TrainingOptions& options, data::Task task,
                                        const std::vector<std::string>& label_names,
                                        const std::filesystem::path& adapter_folder = {});

// The name of a parameter in what save_model writes: PEFT prefixes it.
std::string saved_name(const Parameter& parameter, const run::TrainingOptions& options);

// Writes what a person loads afterwards. Full: model.safetensors, config.json (with label names) and the
// tokenizer's files. LoRA: adapter_model.safetensors and adapter_config.json in PEFT's layout, and the
// tokenizer's files.
void save_model(const LoadedModel& model, const run::TrainingOptions& options,
                const std::filesystem::path& folder);

}  // namespace batchwright::engine
