// BERT (Devlin et al. 2018): token types, exact GELU, a dropout after every branch.

#include "base/error.h"
#include "engine/encoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_bert(const model::ModelConfig& config, const run::TrainingOptions& options,
                                Parameters& parameters) {
  refuse_unless(config, "position_embedding_type", "absolute");
  refuse_unless(config, "is_decoder", false, false);
  refuse_unless(config, "add_cross_attention", false, false);
  if (config.type_vocabulary < 1) {
    throw Error(ErrorKind::Unsupported, "config.json", "type_vocab_size is 0; BERT has token types");
  }
  const EncoderDescription description{.activation = activation_of(config),
                                       .norm_epsilon = config.norm_epsilon,
                                       .hidden_dropout = config.hidden_dropout,
                                       .attention_dropout = config.attention_dropout};
  return std::make_unique<Encoder>(config, description, options, parameters);
}

}  // namespace batchwright::engine
