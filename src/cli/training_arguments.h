#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/task.h"
#include "run/options.h"

namespace batchwright::cli {

// What tune, train and verify read from the command line alike. Texts are kept as typed until finish() has
// checked them, so that every error names its option.
struct TrainingArguments {
  run::TrainingOptions options;
  std::string split;              // "", "auto" or "8x4"
  std::int64_t micro_tokens = 0;  // 0: not given
  std::int64_t devices = 0;       // 0: not given
  std::string text_column = "text", text_pair_column = "text_pair", label_column = "label";
  std::optional<data::Task> task;  // empty: deduced from DATA
  std::optional<std::int32_t> doc_stride;
  std::optional<bool> packing;
  std::string run_folder;  // empty: a folder named after the request
  std::optional<double> budget_seconds;
  bool overwrite = false, json = false, quiet = false;
  bool no_cache = false;  // of tune, and of train when it tunes

  // Everything that is not an option: MODEL DATA, or, after `--`, a command.
  std::vector<std::string> words;
  bool has_command = false;

  // As typed.
  std::string method, schedule, lora_targets, lora_extra_trained, memory_limit, budget;
  std::string task_name, packing_name = "auto";
  std::optional<std::int64_t> lora;
};

// Declares the options; the storage must outlive the parse.
void add_training_options(CLI::App& app, TrainingArguments& arguments);

// Call first in the callback. Throws Usage naming the option that is wrong.
void finish(const CLI::App& app, TrainingArguments& arguments);

// The split as typed, on as many devices as typed. Throws Usage when the two contradict each other.
run::Split split_of(const TrainingArguments& arguments);

// "MODEL" and "DATA" of a verb that takes no command. Throws Usage when there are more or fewer.
struct ModelAndData {
  std::string model, data;
};
ModelAndData model_and_data(const TrainingArguments& arguments, const std::string& verb);

// Checks that a split makes the effective batch. Throws Usage with the exact splits that are near.
void check_split(const run::Split& split, std::int64_t effective_batch);

}  // namespace batchwright::cli
