// Qwen3 (Yang et al. 2025): Llama with an RMSNorm over each head's queries and keys before they are turned.

#include "engine/decoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_qwen3(const model::ModelConfig& config, const run::TrainingOptions& options,
                                 Parameters& parameters) {
  return std::make_unique<Decoder>(config, rotary_decoder(config), options, parameters);
}

}  // namespace batchwright::engine
