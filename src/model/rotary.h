#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"

namespace batchwright::model {

// Rotary position embedding (Su et al. 2021): pair i of a head is turned by position * frequencies[i].
struct Rotary {
  std::vector<float> frequencies;  // [head_dim / 2]
  double scale = 1;                // of cosine and sine (YaRN's attention factor)
};

// From rope_theta and rope_scaling, as Transformers' modeling_rope_utils.py computes them: default, linear,
// dynamic (which within max_position_embeddings is the default), llama3 and yarn. Throws InvalidInput for a
// missing or senseless factor and Unsupported for another type.
Rotary rotary_of(const ModelConfig& config);

// How many keys a query of this layer may see, its own position included; 0: all before it. Mistral slides in
// every layer, Qwen2 and Qwen3 where use_sliding_window and layer_types (or max_window_layers) say so.
std::int64_t attention_window(const ModelConfig& config, std::int64_t layer);

}  // namespace batchwright::model
