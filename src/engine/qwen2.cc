// Qwen2 (Yang et al. 2024): Llama with biases on queries, keys and values, and a window in some layers if
// asked.

#include "engine/decoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_qwen2(const model::ModelConfig& config, const run::TrainingOptions& options,
                                 Parameters& parameters) {
  return std::make_unique<Decoder>(config, rotary_decoder(config), options, parameters);
}

}  // namespace batchwright::engine
