#include "check/config_shell_arguments.h"

#include <algorithm>

namespace batchwright::check {

namespace {
using Q = Quantity;
}  // namespace

void classify_arguments(Section& arguments) {
  if (arguments.program.find("no_trainer") != std::string::npos) arguments.marks.push_back("no_trainer");
  if (arguments.program == "llamafactory-cli" || arguments.program.find("train_bash") != std::string::npos)
    arguments.tool = Tool::LlamaFactory;
  if (arguments.program.find("axolotl") != std::string::npos) arguments.tool = Tool::Axolotl;
  const bool own_engine = arguments.has("engine_flag") && !arguments.has("deepspeed_flag");
  if (arguments.has("no_trainer") || own_engine) arguments.tool = Tool::Generic;
  // A script on DeepSpeed's engine may mean one device's batch or all devices' by this word.
  if (own_engine)
    std::erase_if(arguments.settings, [](const Setting& s) { return s.key == "train_batch_size"; });
  // --train_batch_size is the global batch where a micro-batch stands beside it (OpenRLHF), else one
  // device's.
  const bool micro = std::any_of(arguments.settings.begin(), arguments.settings.end(), [](const Setting& s) {
    return s.quantity == Q::MicroBatch && s.key != "train_batch_size";
  });
  for (Setting& setting : arguments.settings) {
    if (micro && setting.key == "train_batch_size") setting.quantity = Q::GlobalBatch;
  }
  const bool trainer_words =
      std::any_of(arguments.settings.begin(), arguments.settings.end(), [](const Setting& s) {
        return s.key == "per_device_train_batch_size" || s.key == "gradient_accumulation_steps" ||
               s.key == "num_train_epochs" || s.key == "max_grad_norm" || s.key == "warmup_ratio";
      });
  if (arguments.tool == Tool::Transformers && !trainer_words && !arguments.settings.empty() &&
      !arguments.has("deepspeed_flag"))
    arguments.tool = Tool::Generic;
}

Section variables_of(const ShellScript& script, std::size_t file) {
  Section section;
  section.tool = Tool::Generic;
  section.file = file;
  section.marks.push_back("variables");
  for (const auto& [name, word] : script.variables) {
    const std::optional<double> number = word.unknown ? std::nullopt : parse_number(word.text);
    const std::optional<Quantity> quantity = quantity_of(Tool::Generic, name);
    if (!number || !quantity) continue;
    Setting setting{.quantity = *quantity, .key = name, .written = word.text, .number = number};
    setting.line = word.line;
    setting.file = file;
    setting.inexact = word.inexact;
    section.settings.push_back(std::move(setting));
  }
  return section;
}

}  // namespace batchwright::check
