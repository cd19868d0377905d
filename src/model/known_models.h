#pragma once

#include <string_view>
#include <vector>

#include "model/config.h"

namespace batchwright::model {

// The shape of a model by its common name ("llama-3.1-8b") or its name on the hub
// ("meta-llama/Llama-3.1-8B"), ignoring case, or from a path: a folder or a config.json. Throws Usage naming
// the nearest known model. Source: src/model/known_models.jsonl, where every line names the config.json it
// was taken from.
ModelConfig find_model(std::string_view name_or_path);

// The common names, in the order of the table.
std::vector<std::string_view> known_model_names();

}  // namespace batchwright::model
