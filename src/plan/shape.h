#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/parameters.h"
#include "plan/request.h"

namespace batchwright::plan {

enum class Role { Query, Key, Value, FusedQkv, AttentionOutput, Gate, Up, FusedGateUp, Down, Router, Other };

// One linear layer of a block, or of the model's ends.
struct LinearShape {
  Role role = Role::Other;
  std::int64_t in = 0, out = 0;
  std::int64_t count = 1;  // alike in one block (experts)
  bool lora = false;       // wrapped by an adapter

  double weights() const {
    return static_cast<double>(in) * static_cast<double>(out) * static_cast<double>(count);
  }
};

// A model as the predictions need it: everything that does not depend on the split, summed once.
struct ModelShape {
  model::ModelConfig config;
  model::Head head = model::Head::CausalLm;
  std::vector<LinearShape> block;    // the linear layers of one block
  std::vector<LinearShape> outside;  // pooler and head

  double parameters = 0;                  // the whole model, without adapters
  double stored_blocks = 0;               // of different weights: 1 where all layers share one
  double block_parameters = 0;            // one block
  double block_linear_parameters = 0;     // of them in linear layers: what quantisation packs
  double embedding_parameters = 0;        // embeddings and a separate head
  double input_embedding_parameters = 0;  // without those that a tied head shares
  double largest_tensor = 0;
  std::int64_t tensors = 0;
  double adapter_in_plus_out = 0;  // over all wrapped layers of the model: x rank = adapter parameters
  double extra_trained = 0;        // parameters of lora_extra_trained
  double head_parameters = 0;      // a classification head: trained in full beside adapters

  bool encoder() const { return model::is_encoder(config.architecture); }
  std::int64_t query_width() const { return config.heads * config.head_dim; }
  std::int64_t key_width() const { return config.kv_heads * config.head_dim; }
  double adapter_parameters(std::int64_t rank) const {
    return adapter_in_plus_out * static_cast<double>(rank);
  }
};

// Throws Usage when a LoRA target or an extra trained module matches nothing.
ModelShape shape_of(const model::ModelConfig& config, Task task, const std::vector<std::string>& lora_targets,
                    const std::vector<std::string>& extra_trained);

// The task of a model when the request leaves it open.
Task default_task(const model::ModelConfig& config);

}  // namespace batchwright::plan
