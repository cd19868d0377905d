#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/config_settings.h"

namespace batchwright::check {

// Each reader turns one text into sections; `file` is stamped on every setting and `first_line` is the line
// of the text's first line within its file (fenced blocks of a page start later). Readers never throw on
// content: what they do not understand they leave out. Only parse_config_tree's InvalidInput passes through
// the tree reader.

// JSON and YAML: Trainer arguments, DeepSpeed, Accelerate, Lightning, Axolotl, LLaMA-Factory, and documents
// that hold several of them, or a launch command, under keys of their own.
std::vector<Section> read_tree_sections(const ConfigNode& root, std::size_t file,
                                        const std::string& file_name);

// Shell scripts and single commands: launchers, flags, continuations, variables, arithmetic, #SBATCH lines.
std::vector<Section> read_shell_sections(std::string_view text, std::size_t file, int first_line);

// Python: constructor calls that carry training settings (TrainingArguments, SFTConfig, Accelerator, Trainer
// of Lightning, ...), DeepSpeed dicts, and the module's constants, with arithmetic on them.
std::vector<Section> read_python_sections(std::string_view text, std::size_t file, int first_line);

}  // namespace batchwright::check
