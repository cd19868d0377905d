// DistilBERT (Sanh et al. 2019): BERT's layers without token types and without dropout after the attention.

#include "engine/encoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_distilbert(const model::ModelConfig& config, const run::TrainingOptions& options,
                                      Parameters& parameters) {
  refuse_unless(config, "sinusoidal_pos_embds", false, false);
  const EncoderDescription description{.activation = activation_of(config),
                                       .norm_epsilon = 1e-12,  // fixed in its code, whatever the file says
                                       .hidden_dropout = config.hidden_dropout,
                                       .attention_dropout = config.attention_dropout,
                                       .attention_output_dropout = false};
  return std::make_unique<Encoder>(config, description, options, parameters);
}

}  // namespace batchwright::engine
