#include "model/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

// "a.b.dense" matches the targets "a.b.dense", "b.dense" and "dense", and not "nse".
bool matches(std::string_view name, std::string_view target) {
  if (name.size() < target.size() || name.substr(name.size() - target.size()) != target) return false;
  return name.size() == target.size() || name[name.size() - target.size() - 1] == '.';
}

std::string_view last_word(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

[[noreturn]] void refuse_target(const std::vector<Module>& modules, const std::string& target) {
  std::vector<std::string_view> words;
  for (const Module& module : modules) {
    if (module.kind != ModuleKind::Linear) continue;
    const std::string_view word = last_word(module.name);
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
  }
  const std::string near = nearest_choice(target, words);
  throw Error(ErrorKind::Usage, "lora_targets", fmt::format("no linear module is called \"{}\"", target),
              near.empty() ? fmt::format("The model has {}", fmt::join(words, ", "))
                           : fmt::format("Did you mean \"{}\"?", near));
}

}  // namespace

void ModuleList::linear(const std::string& name, Part part, std::int64_t out, std::int64_t in, bool bias,
                        bool transposed) {
  modules_.push_back({name, ModuleKind::Linear, part, out, in, bias, layer_, transposed, false});
}

void ModuleList::embedding(const std::string& name, std::int64_t rows, std::int64_t width) {
  modules_.push_back(
      {name, ModuleKind::Embedding, Part::Embedding, rows, width, false, layer_, false, false});
}

void ModuleList::norm(const std::string& name, std::int64_t width, bool bias) {
  modules_.push_back({name, ModuleKind::Norm, Part::Norm, width, 0, bias, layer_, false, false});
}

std::int64_t Module::parameters() const {
  const std::int64_t weight = kind == ModuleKind::Norm ? out : out * in;
  return (tied ? 0 : weight) + (bias ? out : 0);
}

std::int64_t TensorShape::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::vector<Module> list_modules(const ModelConfig& config, Head head, std::int64_t num_labels) {
  ModuleList list;
  if (is_encoder(config.architecture)) {
    list_encoder(config, head, num_labels, list);
  } else {
    list_decoder(config, head, num_labels, list);
  }
  return list.take();
}

std::vector<TensorShape> list_tensors(const ModelConfig& config, Head head, std::int64_t num_labels) {
  std::vector<TensorShape> tensors;
  for (const Module& module : list_modules(config, head, num_labels)) {
    std::vector<std::int64_t> shape = {module.out};
    if (module.kind != ModuleKind::Norm) shape.push_back(module.in);
    if (module.transposed) std::swap(shape[0], shape[1]);
    if (!module.tied) tensors.push_back({module.name + ".weight", shape});
    if (module.bias) tensors.push_back({module.name + ".bias", {module.out}});
  }
  return tensors;
}

ParameterCounts count_parameters(const ModelConfig& config, Head head, std::int64_t num_labels) {
  ParameterCounts counts;
  for (const Module& module : list_modules(config, head, num_labels)) {
    const std::int64_t parameters = module.parameters();
    switch (module.part) {
      case Part::Embedding:
        counts.embedding += parameters;
        break;
      case Part::Attention:
        counts.attention += parameters;
        break;
      case Part::Mlp:
        counts.mlp += parameters;
        break;
      case Part::Norm:
        counts.norm += parameters;
        break;
      case Part::Pooler:
        counts.pooler += parameters;
        break;
      case Part::Head:
        counts.head += parameters;
        break;
    }
  }
  return counts;
}

std::vector<Module> lora_modules(const std::vector<Module>& modules,
                                 const std::vector<std::string>& targets) {
  std::vector<bool> used(targets.size(), false);
  const bool all_linear = targets.size() == 1 && targets[0] == "all-linear";
  std::vector<Module> wrapped;
  for (const Module& module : modules) {
    if (module.kind != ModuleKind::Linear) continue;
    bool wanted = all_linear && module.part != Part::Head;
    for (std::size_t i = 0; i < targets.size() && !all_linear; ++i) {
      if (!matches(module.name, targets[i])) continue;
      used[i] = wanted = true;
    }
    if (wanted) wrapped.push_back(module);
  }
  for (std::size_t i = 0; i < targets.size() && !all_linear; ++i) {
    if (!used[i]) refuse_target(modules, targets[i]);
  }
  return wrapped;
}

std::int64_t lora_parameters(const std::vector<Module>& wrapped, std::int64_t rank) {
  std::int64_t sum = 0;
  for (const Module& module : wrapped) sum += rank * (module.in + module.out);
  return sum;
}

}  // namespace batchwright::model
