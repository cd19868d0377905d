// GPT-2 (Radford et al. 2019): learned positions, layer norms, a plain MLP with gelu's tanh form, biases
// everywhere, queries, keys and values in one weight, and weights stored [in, out] (Conv1D).

#include <cmath>

#include "engine/decoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_gpt2(const model::ModelConfig& config, const run::TrainingOptions& options,
                                Parameters& parameters) {
  refuse_unless(config, "add_cross_attention", false, false);
  const JsonFields fields(config.raw, "config.json");
  const bool scales = fields.boolean("scale_attn_weights", true);
  const bool by_layer = fields.boolean("scale_attn_by_inverse_layer_idx", false);
  DecoderDescription description{.norm = NormKind::Layer,
                                 .norm_epsilon = config.norm_epsilon,
                                 .activation = activation_of(config),
                                 .embedding_dropout = fields.number("embd_pdrop", 0, 1, 0.1),
                                 .residual_dropout = config.hidden_dropout,
                                 .attention_dropout = config.attention_dropout};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const float scale = scales ? 1.0f / std::sqrt(static_cast<float>(config.head_dim)) : 1.0f;
    description.score_scales.push_back(by_layer ? scale / static_cast<float>(layer + 1) : scale);
    description.windows.push_back(0);
  }
  return std::make_unique<Decoder>(config, description, options, parameters);
}

}  // namespace batchwright::engine
