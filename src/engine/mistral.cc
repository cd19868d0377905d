// Mistral (Jiang et al. 2023): Llama whose queries see a sliding window of keys.

#include "engine/decoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_mistral(const model::ModelConfig& config, const run::TrainingOptions& options,
                                   Parameters& parameters) {
  return std::make_unique<Decoder>(config, rotary_decoder(config), options, parameters);
}

}  // namespace batchwright::engine
