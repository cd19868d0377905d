#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/config_tree.h"

namespace batchwright::check {

// What a setting means, whatever the tool calls it. Counts are in the unit named; a step is an optimizer
// step.
enum class Quantity {
  MicroBatch,    // examples per forward on one device
  Accumulation,  // micro-batches per step
  GlobalBatch,   // examples per step over all devices
  Processes,     // data-parallel world size, all nodes together
  ProcessesPerNode,
  Nodes,
  ModelParallel,  // devices that share one micro-batch (tensor, pipeline, context parallel), one factor each
  MaxSteps,
  Epochs,
  WarmupSteps,
  WarmupRatio,
  LearningRate,
  Clip,            // maximal gradient norm
  ScheduleSteps,   // length of the learning-rate schedule
  SchedulePeak,    // learning rate at the end of warm-up, when the schedule names it itself
  Examples,        // size of the training set
  ExamplesAtMost,  // an upper bound on it (LLaMA-Factory's max_samples is one per dataset)
  GroupSize,       // completions of one prompt that may not be cut apart (GRPO)
  ScheduleType,
  Optimizer,
  LossName,
  ModelName,
  Classes,
  Vocabulary,
  Fp16,
  Bf16,
};

// Whose rules decide what a setting does.
enum class Tool {
  Transformers,  // Trainer arguments in any spelling: JSON, YAML, flags, TrainingArguments(...)
  LlamaFactory,  // Trainer arguments plus its own
  Axolotl,
  Accelerate,       // accelerate's YAML, or `accelerate launch` options
  DeepSpeed,        // the engine's JSON
  DeepSpeedPlugin,  // the deepspeed_config block of accelerate's YAML
  Lightning,
  Launcher,  // torchrun, deepspeed, mpirun, srun, a scheduler's directives
  Generic,   // batch words with no tool's mark on them
};

struct Setting {
  Quantity quantity = Quantity::MicroBatch;
  std::string key = {};      // as written
  std::string written = {};  // as written
  std::optional<double> number = {};
  bool is_auto = false;
  bool quoted = false;  // a number written as a string
  int line = 0;
  std::size_t file = 0;  // index into the files read together
  std::string inexact =
      {};  // an integer division that had a remainder, spelled out ("100 / 32 = 3, remainder 4")
};

// Settings that stand together: one document, one command's options, one constructor call.
struct Section {
  Tool tool = Tool::Generic;
  std::size_t file = 0;
  int line = 0;
  std::vector<Setting> settings;
  std::string program;  // of a command: the script or module it trains with
  std::vector<std::string>
      references;                      // file names it mentions (--deepspeed ds.json, --config_file acc.yaml)
  std::vector<std::string> marks;      // facts without a number: "manual_optimization", "no_trainer", ...
  std::optional<int> visible_devices;  // CUDA_VISIBLE_DEVICES names so many

  const Setting* find(Quantity quantity) const;  // the last one written wins, as in every argument parser
  std::optional<double> number(Quantity quantity) const;
  bool has(std::string_view mark) const;
};

// The quantity that a key stands for in a tool's configuration, or nothing.
std::optional<Quantity> quantity_of(Tool tool, std::string_view key);

// The tool's own name, for messages.
std::string_view tool_name(Tool tool);
// The quantity in words, for messages.
std::string_view quantity_name(Quantity quantity);

// Adds the setting when the key is known to the tool; returns whether it was.
bool add_setting(Section& section, std::string_view key, const ConfigNode& value);

// Sizes that authors write in comments: "# 12,000 examples", "# dataset: 10k rows", "# 4 GPUs", "# 3 epochs".
// Settings of quantity Examples, Processes or Epochs.
std::vector<Setting> settings_in_comments(std::string_view text, std::size_t file);

}  // namespace batchwright::check
