#include "engine/declare.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace batchwright::engine {

using model::Module;
using model::Role;

bool ends_as(std::string_view module, const std::string& wanted) {
  while (!module.ends_with(wanted)) {
    const auto dot = module.rfind('.');
    if (dot == std::string_view::npos) return false;
    module = module.substr(0, dot);
  }
  return true;
}

bool trains_in_full(const Module& module, const run::TrainingOptions& options) {
  if (options.method == run::Method::Full || module.part == model::Part::Head) return true;
  const auto& named = options.lora.extra_trained;
  return std::any_of(named.begin(), named.end(),
                     [&](const std::string& name) { return ends_as(module.name, name); });
}

const Module* Declaration::find(Role role, std::int64_t layer) const {
  const auto found = std::find_if(modules_.begin(), modules_.end(),
                                  [&](const Module& m) { return m.role == role && m.layer == layer; });
  return found == modules_.end() ? nullptr : &*found;
}

const Module& Declaration::need(Role role, std::int64_t layer) const {
  if (const Module* module = find(role, layer)) return *module;
  throw Error(ErrorKind::Internal, "model",
              fmt::format("no module has role {} in layer {}", static_cast<int>(role), layer));
}

Linear Declaration::linear(const std::vector<Role>& roles, std::int64_t layer) const {
  std::vector<const Module*> modules;
  for (const Role role : roles) modules.push_back(&need(role, layer));
  return linear(modules, layer);
}

Linear Declaration::linear(const std::vector<const Module*>& modules, std::int64_t layer) const {
  const bool train = trains_in_full(*modules.front(), options_);
  for (const Module* m : modules) {
    if (trains_in_full(*m, options_) == train) continue;
    throw Error(ErrorKind::Unsupported, "--lora-extra-trained",
                fmt::format("trains one of {} and {} only", modules.front()->name, m->name),
                "The engine keeps them side by side: name all of them or none");
  }
  Linear result{.weights = {},
                .biases = {},
                .in = modules.front()->in,
                .out = 0,
                .layer = layer,
                .adapters = {},
                .transposed = modules.front()->transposed};
  for (const Module* m : modules) {
    const std::vector<std::int64_t> shape =
        m->transposed ? std::vector{m->in, m->out} : std::vector{m->out, m->in};
    result.weights.push_back(parameters_.declare(m->name + ".weight", shape, train, true));
    result.out += m->out;
  }
  for (const Module* m : modules) {
    if (m->bias) result.biases.push_back(parameters_.declare(m->name + ".bias", {m->out}, train, false));
  }
  return result;
}

Norm Declaration::norm(Role role, std::int64_t layer) const {
  const Module& m = need(role, layer);
  Norm norm{.gamma = parameters_.declare(m.name + ".weight", {m.out}, trains_in_full(m, options_), false),
            .beta = {}};
  if (m.bias) norm.beta = parameters_.declare(m.name + ".bias", {m.out}, trains_in_full(m, options_), false);
  return norm;
}

ParameterId Declaration::embedding(Role role) const {
  const Module& m = need(role, -1);
  return parameters_.declare(m.name + ".weight", {m.out, m.in}, trains_in_full(m, options_), true);
}

}  // namespace batchwright::engine
