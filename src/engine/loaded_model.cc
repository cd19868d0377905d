#include "engine/loaded_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "model/parameters.h"
#include "model/safetensors.h"

namespace batchwright::engine {
namespace {

bool ends_with(const std::string& text, std::string_view end) { return text.ends_with(end); }
bool is_adapter(const std::string& name) {
  return ends_with(name, ".lora_A.weight") || ends_with(name, ".lora_B.weight");
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// A body saved without its head has no "bert." (or "model.", "transformer.") in front; checkpoints from
// before 2019 say gamma and beta.
const model::StoredTensor* find_stored(const model::Safetensors& file, const std::string& name,
                                       const std::string& body) {
  for (const bool bare : {false, true}) {
    if (bare && !name.starts_with(body)) continue;
    const std::string candidate = bare ? name.substr(body.size()) : name;
    for (const bool old_names : {false, true}) {
      std::string spelled = candidate;
      if (old_names) {
        spelled = replaced(replaced(spelled, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias",
                           "LayerNorm.beta");
      }
      if (const model::StoredTensor* tensor = file.find(spelled)) return tensor;
    }
  }
  return nullptr;
}

void copy_checked(const model::StoredTensor& stored, const Parameter& parameter, std::span<float> out,
                  const std::filesystem::path& path, bool is_head) {
  if (stored.shape != parameter.shape) {
    throw Error(ErrorKind::InvalidInput, path.string(),
                fmt::format("tensor {} has shape [{}], and the configuration asks for [{}]", parameter.name,
                            fmt::join(stored.shape, ", "), fmt::join(parameter.shape, ", ")),
                is_head ? "The data has another number of classes than the model's head"
                        : "config.json and the weights belong to different models");
  }
  model::copy_as_float(stored, parameter.name, out);
}

void initialise(const Parameter& parameter, std::span<float> out, const run::TrainingOptions& options,
                double initializer_range, std::uint64_t stream) {
  RandomStream random(options.seed, RandomUse::Initialisation, stream);
  std::fill(out.begin(), out.end(), 0.0f);
  if (ends_with(parameter.name, ".lora_A.weight")) {
    const double bound =
        1 / std::sqrt(static_cast<double>(parameter.shape[1]));  // kaiming_uniform with a = sqrt(5)
    for (float& x : out) x = static_cast<float>((2 * random.uniform() - 1) * bound);
  } else if (parameter.shape.size() == 2 && !ends_with(parameter.name, ".lora_B.weight")) {
    for (float& x : out) x = static_cast<float>(random.normal() * initializer_range);
  }
}

// "bert.pooler.dense.weight" for its bias, and the other way round.
std::string partner_of(const std::string& name) {
  return name.ends_with(".bias") ? name.substr(0, name.size() - 5) + ".weight"
                                 : replaced(name, ".weight", ".bias");
}

bool is_classification(data::Task task) {
  return task == data::Task::SequenceClassification || task == data::Task::TokenClassification;
}

// A head that the checkpoint lacks starts fresh; a language model without its own would say nothing.
bool may_be_missing(const std::string& name, data::Task task, const std::vector<model::Module>& heads) {
  if (is_adapter(name)) return true;
  return task != data::Task::CausalLm && std::any_of(heads.begin(), heads.end(), [&](const auto& module) {
           return name == module.name + ".weight" || name == module.name + ".bias";
         });
}

}  // namespace

std::vector<float> LoadedModel::values(ParameterId id) const {
  std::vector<float> host(static_cast<std::size_t>(parameters.at(id).count));
  ops->download(parameters.value(id), parameters.at(id).count, host.data());
  return host;
}

void LoadedModel::set_values(ParameterId id, std::span<const float> values) const {
  ops->upload(values.data(), parameters.at(id).count, parameters.value(id));
}

std::unique_ptr<LoadedModel> load_model(const std::filesystem::path& folder,
                                        const run::TrainingOptions& options, data::Task task,
                                        const std::vector<std::string>& label_names,
                                        const std::filesystem::path& adapter_folder) {
  auto result = std::make_unique<LoadedModel>();
  result->folder = folder;
  result->config = model::read_model_config(folder);
  result->task = task;
  result->label_names = label_names;
  Parameters& parameters = result->parameters;
  const auto classes = static_cast<std::int64_t>(label_names.size());
  if (classes < 2 && is_classification(task)) {
    throw Error(ErrorKind::InvalidInput, "data",
                fmt::format("has {} class(es); classification needs two", classes));
  }
  result->network = make_network(result->config, options, task, classes, parameters);
  const auto heads = head_modules(result->config, task, classes);
  const model::Safetensors weights = model::Safetensors::open_model(folder);
  std::optional<model::Safetensors> adapter;
  if (!adapter_folder.empty()) {
    adapter = model::Safetensors::open_file(adapter_folder / "adapter_model.safetensors");
  }
  const std::vector<model::Module> modules =
      model::list_modules(result->config, model::Head::SequenceClassification, classes);
  const std::string& first = modules.front().name;  // the word embeddings
  const std::string body = first.substr(0, first.find('.') + 1);
  result->ops = make_ops(options.device, options.precision);
  parameters.allocate(result->ops->device());
  std::uint64_t stream = 0;
  for (ParameterId id = 0; id < parameters.all().size(); ++id, ++stream) {
    const Parameter& p = parameters.at(id);
    // On the CPU straight into place, and the file's pages let go: loading must not need more than training.
    const bool in_place = result->ops->device() == DeviceKind::Cpu;
    std::vector<float> staging(in_place ? 0 : static_cast<std::size_t>(p.count));
    const std::span<float> destination =
        in_place ? std::span<float>(parameters.value(id), static_cast<std::size_t>(p.count)) : staging;
    const model::StoredTensor* trained =
        adapter.has_value() ? adapter->find("base_model.model." + p.name) : nullptr;
    const model::StoredTensor* stored = trained != nullptr ? trained : find_stored(weights, p.name, body);
    if (stored != nullptr) {
      copy_checked(*stored, p, destination, trained != nullptr ? adapter->path() : weights.path(),
                   may_be_missing(p.name, task, heads));
      drop_resident_pages(stored->bytes);
    } else if (may_be_missing(p.name, task, heads) &&
               (is_adapter(p.name) || find_stored(weights, partner_of(p.name), body) == nullptr)) {
      initialise(p, destination, options, result->config.initializer_range, stream);
      result->initialised.push_back(p.name);
    } else {
      throw Error(ErrorKind::InvalidInput, weights.path().string(), fmt::format("lacks tensor {}", p.name),
                  "config.json and the weights belong to different models");
    }
    if (!in_place) result->set_values(id, staging);
    result->ops->round_stored(parameters.value(id), p.count);
  }
  return result;
}

}  // namespace batchwright::engine
