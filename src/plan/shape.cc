#include "plan/shape.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace batchwright::plan {
namespace {

using model::Module;
using model::ModuleKind;
using model::Part;

model::Head head_of(Task task) {
  switch (task) {
    case Task::CausalLm:
      return model::Head::CausalLm;
    case Task::SequenceClassification:
      return model::Head::SequenceClassification;
    case Task::TokenClassification:
      return model::Head::TokenClassification;
    case Task::QuestionAnswering:
      return model::Head::QuestionAnswering;
  }
  return model::Head::CausalLm;
}

std::vector<const Module*> linears_of(const std::vector<Module>& modules, std::int64_t layer, Part part) {
  std::vector<const Module*> found;
  for (const Module& module : modules) {
    if (module.layer == layer && module.kind == ModuleKind::Linear && module.part == part)
      found.push_back(&module);
  }
  return found;
}

LinearShape linear_of(const Module& module, Role role, const std::vector<Module>& wrapped) {
  const bool lora =
      std::any_of(wrapped.begin(), wrapped.end(), [&](const Module& m) { return m.name == module.name; });
  return {role, module.in, module.out, 1, lora};
}

// Attention and MLP modules are listed in a fixed order (see decoder_modules.cc): the role follows from it.
void add_attention(const std::vector<const Module*>& found, const std::vector<Module>& wrapped,
                   ModelShape& shape) {
  static constexpr Role kSeparate[] = {Role::Query, Role::Key, Role::Value, Role::AttentionOutput};
  static constexpr Role kFused[] = {Role::FusedQkv, Role::AttentionOutput};
  for (std::size_t i = 0; i < found.size() && i < 4; ++i) {
    shape.block.push_back(linear_of(*found[i], found.size() == 2 ? kFused[i] : kSeparate[i], wrapped));
  }
}

void add_mlp(const std::vector<const Module*>& found, const std::vector<Module>& wrapped, ModelShape& shape) {
  const std::int64_t intermediate = shape.config.intermediate;
  if (shape.config.experts > 0) {
    shape.block.push_back(linear_of(*found[0], Role::Router, wrapped));
    // Mixtral registers w1, w2, w3: the way back stands in the middle.
    static constexpr Role kMixtral[] = {Role::Gate, Role::Down, Role::Up},
                          kOthers[] = {Role::Gate, Role::Up, Role::Down};
    const auto& roles = shape.config.architecture == model::Architecture::Mixtral ? kMixtral : kOthers;
    for (std::size_t i = 0; i < 3; ++i) {
      LinearShape linear = linear_of(*found[1 + i], roles[i], wrapped);
      linear.count = shape.config.experts;
      shape.block.push_back(linear);
    }
    return;
  }
  if (found.size() == 3) {
    static constexpr Role kGated[] = {Role::Gate, Role::Up, Role::Down};
    for (std::size_t i = 0; i < 3; ++i) shape.block.push_back(linear_of(*found[i], kGated[i], wrapped));
    return;
  }
  const bool fused = found[0]->out == 2 * intermediate;
  shape.block.push_back(linear_of(*found[0], fused ? Role::FusedGateUp : Role::Up, wrapped));
  shape.block.push_back(linear_of(*found[1], Role::Down, wrapped));
}

void sum_parameters(const std::vector<Module>& modules, ModelShape& shape) {
  const bool tied_head = shape.head == model::Head::CausalLm && shape.config.tie_word_embeddings;
  for (const Module& module : modules) {
    const auto parameters = static_cast<double>(module.parameters());
    shape.parameters += parameters;
    shape.tensors += 1 + (module.bias ? 1 : 0);
    const double weight =
        static_cast<double>(module.out) * static_cast<double>(std::max<std::int64_t>(module.in, 1));
    shape.largest_tensor = std::max(shape.largest_tensor, weight);
    if (module.layer == 0) {
      shape.block_parameters += parameters;
      if (module.kind == ModuleKind::Linear) shape.block_linear_parameters += parameters;
    }
    if (module.part == Part::Embedding ||
        (module.part == Part::Head && shape.head == model::Head::CausalLm)) {
      shape.embedding_parameters += parameters;
    }
    if (module.part == Part::Embedding && !tied_head) shape.input_embedding_parameters += parameters;
    if (module.part == Part::Head && shape.head != model::Head::CausalLm) shape.head_parameters += parameters;
  }
}

double extra_parameters(const std::vector<Module>& modules, const std::vector<std::string>& names) {
  double sum = 0;
  for (const std::string& name : names) {
    bool found = false;
    for (const Module& module : modules) {
      if (module.name != name && !module.name.ends_with("." + name)) continue;
      found = true;
      // A tied head that is trained gets a copy of its own.
      sum += static_cast<double>(module.out) * static_cast<double>(std::max<std::int64_t>(module.in, 1));
    }
    if (found) continue;
    std::vector<std::string_view> known;
    for (const Module& module : modules) {
      if (module.layer < 0) known.push_back(module.name);
    }
    const std::string near = nearest_choice(name, known);
    throw Error(ErrorKind::Usage, "lora_extra_trained",
                fmt::format("no module is called \"{}\"", name.substr(0, 60)),
                near.empty() ? "" : fmt::format("Did you mean \"{}\"?", near));
  }
  return sum;
}

}  // namespace

Task default_task(const model::ModelConfig& config) {
  return model::is_encoder(config.architecture) ? Task::SequenceClassification : Task::CausalLm;
}

ModelShape shape_of(const model::ModelConfig& config, Task task, const std::vector<std::string>& lora_targets,
                    const std::vector<std::string>& extra_trained) {
  ModelShape shape;
  shape.config = config;
  shape.stored_blocks = config.shares_blocks ? 1 : static_cast<double>(config.layers);
  shape.head = head_of(task);
  const std::vector<Module> modules = model::list_modules(config, shape.head, config.num_labels.value_or(2));
  std::vector<Module> wrapped;
  if (!lora_targets.empty()) wrapped = model::lora_modules(modules, lora_targets);
  add_attention(linears_of(modules, 0, Part::Attention), wrapped, shape);
  add_mlp(linears_of(modules, 0, Part::Mlp), wrapped, shape);
  for (const Part part : {Part::Pooler, Part::Head}) {
    for (const Module* module : linears_of(modules, -1, part)) {
      shape.outside.push_back(linear_of(*module, Role::Other, wrapped));
    }
  }
  sum_parameters(modules, shape);
  for (const Module& module : wrapped)
    shape.adapter_in_plus_out += static_cast<double>(module.in + module.out);
  shape.extra_trained = extra_parameters(modules, extra_trained);
  return shape;
}

}  // namespace batchwright::plan
