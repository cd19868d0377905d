// save_model: the Hugging Face and PEFT layouts on disk.

#include <fmt/format.h>

#include <map>
#include <system_error>

#include "base/error.h"
#include "engine/adapters.h"
#include "engine/loaded_model.h"
#include "model/safetensors.h"

namespace batchwright::engine {
namespace {

void copy_tokenizer(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt", "vocab.json",
        "merges.txt", "tokenizer.model", "added_tokens.json", "chat_template.jinja"}) {
    std::error_code ignored;
    if (std::filesystem::equivalent(from, to, ignored)) return;
    if (!std::filesystem::exists(from / name)) continue;
    write_file_atomic(to / name, read_file(from / name));
  }
}

// "Bert" of BertForSequenceClassification: the family as Transformers' classes spell it.
std::string class_prefix(const std::string& model_type) {
  static const std::map<std::string, std::string> kPrefixes = {
      {"bert", "Bert"},           {"roberta", "Roberta"}, {"xlm-roberta", "XLMRoberta"},
      {"camembert", "Camembert"}, {"gpt2", "GPT2"},       {"distilbert", "DistilBert"},
      {"llama", "Llama"},         {"qwen2", "Qwen2"},     {"qwen3", "Qwen3"},
      {"mistral", "Mistral"}};
  const auto found = kPrefixes.find(model_type);
  return found == kPrefixes.end() ? "" : found->second;
}

Json with_labels(Json config, const std::vector<std::string>& names) {
  Json id2label = Json::object(), label2id = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    id2label[std::to_string(i)] = names[i];
    label2id[names[i]] = i;
  }
  config["architectures"] = {class_prefix(config["model_type"].get<std::string>()) +
                             "ForSequenceClassification"};
  config["problem_type"] = "single_label_classification";
  config["id2label"] = id2label;
  config["label2id"] = label2id;
  config.erase("num_labels");
  return config;
}

Json adapter_config(const LoadedModel& model, const run::TrainingOptions& options) {
  const bool all = options.lora.targets == std::vector<std::string>{"all-linear"};
  std::vector<std::string> saved = {"classifier", "score"};  // as PEFT adds for SEQ_CLS
  saved.insert(saved.end(), options.lora.extra_trained.begin(), options.lora.extra_trained.end());
  return {{"peft_type", "LORA"},
          {"task_type", "SEQ_CLS"},
          {"base_model_name_or_path", std::filesystem::absolute(model.folder).string()},
          {"r", options.lora.rank},
          {"lora_alpha", options.lora.alpha},
          {"lora_dropout", options.lora.dropout},
          {"target_modules", all ? wrapped_module_names(model.config, options) : options.lora.targets},
          {"modules_to_save", saved},
          {"bias", "none"},
          {"fan_in_fan_out", model.config.architecture == model::Architecture::Gpt2},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"use_rslora", options.lora.rank_stabilised},
          {"use_dora", false}};
}

}  // namespace

std::string saved_name(const Parameter& parameter, const run::TrainingOptions& options) {
  return options.method == run::Method::Lora ? "base_model.model." + parameter.name : parameter.name;
}

void save_model(const LoadedModel& model, const run::TrainingOptions& options,
                const std::filesystem::path& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const bool lora = options.method == run::Method::Lora;
  std::vector<std::vector<float>> values;
  values.reserve(model.parameters.all().size());  // tensors keep spans into it
  std::vector<model::TensorToWrite> tensors;
  for (ParameterId id = 0; id < model.parameters.all().size(); ++id) {
    const Parameter& p = model.parameters.at(id);
    if (lora && !p.trainable) continue;
    values.push_back(model.values(id));
    tensors.push_back({saved_name(p, options), p.shape, values.back()});
  }
  model::write_safetensors(folder / (lora ? "adapter_model.safetensors" : "model.safetensors"), tensors);
  if (lora) {
    const Json config = adapter_config(model, options);
    write_file_atomic(folder / "adapter_config.json", config.dump(2) + "\n");
    Json labels = Json::object();
    for (std::size_t i = 0; i < model.label_names.size(); ++i)
      labels[std::to_string(i)] = model.label_names[i];
    write_file_atomic(folder / "labels.json", Json{{"id2label", labels}}.dump(2) + "\n");
  } else {
    write_file_atomic(folder / "config.json",
                      with_labels(model.config.raw, model.label_names).dump(2) + "\n");
  }
  copy_tokenizer(model.folder, folder);
}

}  // namespace batchwright::engine
