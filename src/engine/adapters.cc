#include "engine/adapters.h"

#include <algorithm>

#include "base/error.h"
#include "model/parameters.h"

namespace batchwright::engine {

std::vector<std::string> wrapped_module_names(const model::ModelConfig& config,
                                              const run::LoraOptions& options) {
  const auto modules = model::list_modules(config, model::Head::SequenceClassification);
  std::vector<std::string> names;
  for (const model::Module& module : model::lora_modules(modules, options.targets)) {
    if (module.part == model::Part::Head) {
      throw Error(ErrorKind::Usage, "--lora-targets", "names the classification head " + module.name,
                  "The head is trained in full; leave it out of the targets");
    }
    names.push_back(module.name);
  }
  return names;
}

void add_adapters(Parameters& parameters, Linear& linear, const std::vector<Site>& sites,
                  const std::vector<std::string>& wrapped_modules, const run::LoraOptions& options) {
  std::int64_t out_begin = 0;
  for (std::size_t i = 0; i < linear.weights.size(); ++i) {
    const Parameter weight = parameters.at(linear.weights[i]);
    const std::string module = weight.name.substr(0, weight.name.rfind(".weight"));
    const std::int64_t out = weight.shape[0];
    if (std::find(wrapped_modules.begin(), wrapped_modules.end(), module) != wrapped_modules.end()) {
      Adapter adapter{.rank = options.rank,
                      .out_begin = out_begin,
                      .out = out,
                      .scale = static_cast<float>(options.alpha / static_cast<double>(options.rank)),
                      .threshold = dropout_threshold(options.dropout),
                      .site = sites[i]};
      adapter.a = parameters.declare(module + ".lora_A.weight", {options.rank, linear.in}, true, true);
      adapter.b = parameters.declare(module + ".lora_B.weight", {out, options.rank}, true, true);
      linear.adapters.push_back(adapter);
    }
    out_begin += out;
  }
}

}  // namespace batchwright::engine
