#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/config_settings.h"

namespace batchwright::check {

// A number with the setting that it comes from; `value` is empty when it cannot be known.
struct Known {
  std::optional<double> value;
  const Setting* from = nullptr;  // nullptr: a default, or computed from several
  explicit operator bool() const { return value.has_value(); }
  double operator*() const { return *value; }
};

// One training run as the files together describe it: who launches, which arguments, which engine. Sections
// are copies; what a command passes comes after what its configuration files say, so that the last one wins.
struct Run {
  Section arguments;                  // the trainer's; no settings when the files hold none
  std::optional<Section> engine;      // DeepSpeed's JSON
  std::optional<Section> plugin;      // the deepspeed_config block of accelerate's YAML
  std::optional<Section> accelerate;  // accelerate's YAML or the Accelerator(...) call
  std::optional<Section> accelerator_call;
  std::optional<Section> launch;
  std::vector<Setting> remarks;  // sizes from script variables and comments
  bool complete = true;          // every configuration file that the command names was read
  bool from_command = false;

  bool has_arguments() const { return !arguments.settings.empty(); }
  // The Trainer of Transformers decides: it compares its arguments with DeepSpeed's file and refuses
  // differences.
  bool trainer() const;
  bool deepspeed() const { return engine || plugin; }
  bool lightning() const { return arguments.tool == Tool::Lightning; }

  Known micro_batch() const;
  Known accumulation() const;
  // Data-parallel processes: what the launcher starts, over model parallelism.
  Known processes() const;
  Known effective_batch() const;
  Known max_steps() const;  // empty when the run is measured in epochs
  Known epochs() const;
  Known examples() const;          // exactly known
  Known examples_at_most() const;  // exactly, or an upper bound
  // Optimizer steps of the whole run; `at_most` takes the largest number the files allow (one process).
  Known total_steps(bool at_most) const;
};

// What the files say, joined into runs: a command with the files that it names, or, without commands, the one
// plausible combination of documents. Several alternatives (ds_zero2.json beside ds_zero3.json) stay apart.
std::vector<Run> assemble_runs(const std::vector<Section>& sections, const std::vector<Setting>& comments,
                               const std::vector<std::string>& file_names);

}  // namespace batchwright::check
