#include "engine/families.h"

#include <fmt/format.h>

#include "base/error.h"

namespace batchwright::engine {

using model::Architecture;

std::unique_ptr<Body> make_body(const model::ModelConfig& config, const run::TrainingOptions& options,
                                Parameters& parameters) {
  switch (config.architecture) {
    case Architecture::Bert:
      return make_bert(config, options, parameters);
    case Architecture::Roberta:
      return make_roberta(config, options, parameters);
    case Architecture::DistilBert:
      return make_distilbert(config, options, parameters);
    case Architecture::Gpt2:
      return make_gpt2(config, options, parameters);
    case Architecture::Llama:
      return make_llama(config, options, parameters);
    case Architecture::Mistral:
      return make_mistral(config, options, parameters);
    case Architecture::Qwen2:
      return make_qwen2(config, options, parameters);
    case Architecture::Qwen3:
      return make_qwen3(config, options, parameters);
    default:
      throw Error(ErrorKind::Unsupported, "config.json",
                  fmt::format("model_type is \"{}\"", config.model_type),
                  "The engine trains bert, roberta, distilbert, gpt2, llama, mistral, qwen2 and qwen3");
  }
}

Activation activation_of(const model::ModelConfig& config) {
  if (config.activation == "gelu") return Activation::Gelu;
  if (config.activation == "gelu_new" || config.activation == "gelu_pytorch_tanh")
    return Activation::GeluTanh;
  throw Error(ErrorKind::Unsupported, "config.json",
              fmt::format("the activation is \"{}\"", config.activation),
              "The engine has \"gelu\", \"gelu_new\" and \"gelu_pytorch_tanh\" for this family");
}

void refuse_unless(const model::ModelConfig& config, const char* field, bool wanted, bool standard) {
  if (JsonFields(config.raw, "config.json").boolean(field, standard) == wanted) return;
  throw Error(ErrorKind::Unsupported, "config.json", fmt::format("{} is {}", field, !wanted),
              fmt::format("The engine trains {} models where it is {}", config.model_type, wanted));
}

void refuse_unless(const model::ModelConfig& config, const char* field, const std::string& wanted) {
  const std::string found = JsonFields(config.raw, "config.json").text(field, wanted);
  if (found == wanted) return;
  throw Error(ErrorKind::Unsupported, "config.json", fmt::format("{} is \"{}\"", field, found),
              fmt::format("The engine has \"{}\" for {}", wanted, config.model_type));
}

}  // namespace batchwright::engine
