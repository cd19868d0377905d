#pragma once

#include <memory>

#include "engine/body.h"
#include "model/config.h"
#include "run/options.h"

namespace batchwright::engine {

// One function a family, in a file of its name: checks what config.json asks for and describes the family to
// the blocks it is made of (encoder.h, decoder.h). Throws Error(Unsupported) naming a setting that is not
// there.
using MakeBody = std::unique_ptr<Body>(const model::ModelConfig& config, const run::TrainingOptions& options,
                                       Parameters& parameters);

MakeBody make_bert, make_roberta, make_distilbert;
MakeBody make_gpt2, make_llama, make_mistral, make_qwen2, make_qwen3;

// The family that config.json's model_type names.
MakeBody make_body;

// For the families: the activation that config.json names, and refusals of what would change the numbers.
Activation activation_of(const model::ModelConfig& config);
void refuse_unless(const model::ModelConfig& config, const char* field, bool wanted, bool standard);
void refuse_unless(const model::ModelConfig& config, const char* field, const std::string& wanted);

}  // namespace batchwright::engine
