#include "model/parameters.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

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

bool is_named(std::string_view name, std::string_view wanted) {
  if (!name.ends_with(wanted)) return false;
  return name.size() == wanted.size() || name[name.size() - wanted.size() - 1] == '.';
}

Part part_of(Role role) {
  switch (role) {
    case Role::WordEmbedding:
    case Role::PositionEmbedding:
    case Role::TypeEmbedding:
    case Role::EmbeddingProjection:
      return Part::Embedding;
    case Role::Query:
    case Role::Key:
    case Role::Value:
    case Role::QueryKeyValue:
    case Role::AttentionOutput:
      return Part::Attention;
    case Role::Router:
    case Role::Gate:
    case Role::Up:
    case Role::GateUp:
    case Role::Down:
      return Part::Mlp;
    case Role::EmbeddingNorm:
    case Role::QueryNorm:
    case Role::KeyNorm:
    case Role::AttentionNorm:
    case Role::MlpNorm:
    case Role::ExtraNorm:
    case Role::FinalNorm:
      return Part::Norm;
    case Role::Pooler:
      return Part::Pooler;
    case Role::HeadDense:
    case Role::HeadOutput:
      return Part::Head;
  }
  return Part::Head;
}

void ModuleList::linear(const std::string& name, Role role, std::int64_t out, std::int64_t in, bool bias,
                        bool transposed) {
  modules_.push_back(
      {name, ModuleKind::Linear, role, part_of(role), out, in, bias, layer_, transposed, false});
}

void ModuleList::embedding(const std::string& name, Role role, std::int64_t rows, std::int64_t width) {
  modules_.push_back(
      {name, ModuleKind::Embedding, role, part_of(role), rows, width, false, layer_, false, false});
}

void ModuleList::norm(const std::string& name, Role role, std::int64_t width, bool bias) {
  modules_.push_back({name, ModuleKind::Norm, role, part_of(role), width, 0, bias, layer_, false, false});
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
      if (!is_named(module.name, targets[i])) continue;
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
