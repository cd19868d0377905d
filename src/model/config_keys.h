#pragma once

#include <cstdint>
#include <string_view>

#include "model/architecture.h"

namespace batchwright::model {

// What one family calls each field in config.json, and the values its Transformers configuration class gives
// to fields that a file may leave out. Source: the configuration_*.py files of Transformers 4.57 (Baichuan,
// ChatGLM and Qwen 1: the configuration files published with their weights).
struct ConfigKeys {
  std::string_view hidden, layers, heads, intermediate, vocabulary, positions;
  std::string_view norm_epsilon, hidden_dropout, attention_dropout, classifier_dropout, activation;
  std::int64_t default_positions;
  double default_norm_epsilon, default_dropout;
  std::string_view default_activation;
  bool has_token_types, ties_embeddings;
};

const ConfigKeys& config_keys(Architecture architecture);

}  // namespace batchwright::model
