// RoBERTa (Liu et al. 2019), XLM-RoBERTa, CamemBERT: BERT whose positions begin behind the padding's.

#include "base/error.h"
#include "engine/encoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_roberta(const model::ModelConfig& config, const run::TrainingOptions& options,
                                   Parameters& parameters) {
  refuse_unless(config, "position_embedding_type", "absolute");
  refuse_unless(config, "is_decoder", false, false);
  refuse_unless(config, "add_cross_attention", false, false);
  if (config.type_vocabulary < 1) {
    throw Error(ErrorKind::Unsupported, "config.json", "type_vocab_size is 0; RoBERTa has one token type");
  }
  const EncoderDescription description{.activation = activation_of(config),
                                       .norm_epsilon = config.norm_epsilon,
                                       .position_offset = config.first_position(),
                                       .hidden_dropout = config.hidden_dropout,
                                       .attention_dropout = config.attention_dropout};
  return std::make_unique<Encoder>(config, description, options, parameters);
}

}  // namespace batchwright::engine
