#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/planner.h"

namespace batchwright::plan {

// The formats `--format` knows.
const std::vector<std::string_view>& export_formats();

// The settings that produce the plan's split `index` in another tool, as text to save:
//   transformers   keyword arguments of TrainingArguments (JSON)
//   accelerate     a configuration for `accelerate launch` (YAML)
//   deepspeed      ds_config.json
//   lightning      arguments of Trainer, and what the DataLoader and the optimizer need (YAML)
//   axolotl, llama-factory   from their documented keys; these tools are not run here
// Each names what people forget: warm-up in optimizer steps, accumulation in every place that has it, whole
// last batches dropped. Throws Usage naming the nearest format.
std::string export_settings(const Plan& plan, std::size_t index, std::string_view format);

}  // namespace batchwright::plan
