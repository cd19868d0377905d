// Llama (Touvron et al. 2023): rotary positions, stretched in 3.1 and later by rope_scaling "llama3", and
// key-value heads shared by groups of queries.

#include "engine/decoder.h"
#include "engine/families.h"

namespace batchwright::engine {

std::unique_ptr<Body> make_llama(const model::ModelConfig& config, const run::TrainingOptions& options,
                                 Parameters& parameters) {
  // Another model under a relative's description: some of its layers have no positions.
  refuse_unless(config, "model_type", "llama");
  return std::make_unique<Decoder>(config, rotary_decoder(config), options, parameters);
}

}  // namespace batchwright::engine
