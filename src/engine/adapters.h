#pragma once

#include <string>
#include <vector>

#include "engine/linear.h"
#include "model/config.h"
#include "model/parameters.h"
#include "run/options.h"

namespace batchwright::engine {

// Gives `linear` a LoRA adapter for each of its projections that options.targets name. `sites` has one entry
// a projection. Throws Error(Usage) for a target that names no module or the classification head (trained in
// full).
void add_adapters(Parameters& parameters, Linear& linear, const std::vector<Site>& sites,
                  const std::vector<std::string>& wrapped_modules, const run::LoraOptions& options);

// Names of the modules that the targets wrap, as PEFT chooses them: those that train in full are left out.
// Throws Error(Usage) for an extra trained module that does not exist, and for a language model's head, which
// takes no adapter here.
std::vector<std::string> wrapped_module_names(const model::ModelConfig& config, model::Head head,
                                              const run::TrainingOptions& options);

}  // namespace batchwright::engine
