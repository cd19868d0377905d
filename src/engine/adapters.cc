#include "engine/adapters.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/declare.h"
#include "model/parameters.h"

namespace batchwright::engine {

std::vector<std::string> wrapped_module_names(const model::ModelConfig& config, model::Head head,
                                              const run::TrainingOptions& options) {
  const auto modules = model::list_modules(config, head);
  const auto refuse_unless_any = [&](const std::string& option, const std::string& name, const auto& fits,
                                     const std::string& hint) {
    if (std::any_of(modules.begin(), modules.end(), fits)) return;
    throw Error(ErrorKind::Usage, option, "\"" + name + "\" names no module that can be", hint);
  };
  for (const std::string& name : options.lora.extra_trained) {
    refuse_unless_any(
        "--lora-extra-trained", name, [&](const model::Module& m) { return ends_as(m.name, name); },
        "It is a module's name or the end of one");
  }
  std::vector<std::string> names;
  for (const model::Module& module : model::lora_modules(modules, options.lora.targets)) {
    if (head == model::Head::CausalLm && module.part == model::Part::Head) {
      throw Error(ErrorKind::Usage, "--lora-targets", "names the language model's head " + module.name,
                  "It stays as it is; leave it out of the targets");
    }
    if (!trains_in_full(module, options)) names.push_back(module.name);
  }
  for (const std::string& name : options.lora.targets) {
    if (name == "all-linear") continue;
    refuse_unless_any(
        "--lora-targets", name,
        [&](const model::Module& m) { return model::is_named(m.name, name) && !trains_in_full(m, options); },
        "What trains in full, as the head does, gets no adapter");
  }
  return names;
}

void add_adapters(Parameters& parameters, Linear& linear, const std::vector<Site>& sites,
                  const std::vector<std::string>& wrapped_modules, const run::LoraOptions& options) {
  const double rank = static_cast<double>(options.rank);
  const double scale = options.alpha / (options.rank_stabilised ? std::sqrt(rank) : rank);
  std::int64_t out_begin = 0;
  for (std::size_t i = 0; i < linear.weights.size(); ++i) {
    const Parameter weight = parameters.at(linear.weights[i]);
    const std::string module = weight.name.substr(0, weight.name.rfind(".weight"));
    const std::int64_t out = weight.shape[linear.transposed ? 1 : 0];
    if (std::find(wrapped_modules.begin(), wrapped_modules.end(), module) != wrapped_modules.end()) {
      Adapter adapter{.rank = options.rank,
                      .out_begin = out_begin,
                      .out = out,
                      .scale = static_cast<float>(scale),
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
