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

// What a task is called by Transformers' classes and by PEFT, and the heads that PEFT saves whole.
struct TaskNames {
  std::string head, peft;
  std::vector<std::string> modules_to_save;
};

TaskNames names_of(data::Task task) {
  switch (task) {
    case data::Task::SequenceClassification:
      return {"ForSequenceClassification", "SEQ_CLS", {"classifier", "score"}};
    case data::Task::TokenClassification:
      return {"ForTokenClassification", "TOKEN_CLS", {"classifier", "score"}};
    case data::Task::QuestionAnswering:
      return {"ForQuestionAnswering", "QUESTION_ANS", {"qa_outputs"}};
    case data::Task::CausalLm:
      return {"ForCausalLM", "CAUSAL_LM", {}};
  }
  throw Error(ErrorKind::Internal, "task", "is none that is known");
}

// "BertForTokenClassification": the family's part from what the checkpoint calls itself, else from its type.
std::string architecture_of(const model::ModelConfig& config, data::Task task) {
  const std::string head = names_of(task).head;
  if (config.model_type == "gpt2" && task == data::Task::CausalLm) return "GPT2LMHeadModel";
  static const std::map<std::string, std::string> kFamilies = {
      {"bert", "Bert"},           {"roberta", "Roberta"},       {"xlm-roberta", "XLMRoberta"},
      {"camembert", "Camembert"}, {"distilbert", "DistilBert"}, {"gpt2", "GPT2"},
      {"llama", "Llama"},         {"mistral", "Mistral"},       {"qwen2", "Qwen2"},
      {"qwen3", "Qwen3"}};
  const auto family = kFamilies.find(config.model_type);
  return family == kFamilies.end() ? "" : family->second + head;
}

// config.json of the trained model: the body's as it was, the head's as it is now.
Json trained_config(const LoadedModel& model) {
  Json config = model.config.raw;
  const std::string architecture = architecture_of(model.config, model.task);
  if (!architecture.empty()) config["architectures"] = {architecture};
  // The weights are written as float32, and Transformers 5 loads in the type that is named here (4 calls it
  // torch_dtype).
  for (const char* name : {"dtype", "torch_dtype"}) {
    if (config.contains(name)) config[name] = "float32";
  }
  if (model.label_names.empty()) return config;
  Json id2label = Json::object(), label2id = Json::object();
  for (std::size_t i = 0; i < model.label_names.size(); ++i) {
    id2label[std::to_string(i)] = model.label_names[i];
    label2id[model.label_names[i]] = i;
  }
  if (model.task == data::Task::SequenceClassification)
    config["problem_type"] = "single_label_classification";
  config["id2label"] = id2label;
  config["label2id"] = label2id;
  config.erase("num_labels");
  return config;
}

Json adapter_config(const LoadedModel& model, const run::TrainingOptions& options) {
  const bool all = options.lora.targets == std::vector<std::string>{"all-linear"};
  const TaskNames names = names_of(model.task);
  std::vector<std::string> saved = names.modules_to_save;
  saved.insert(saved.end(), options.lora.extra_trained.begin(), options.lora.extra_trained.end());
  return {{"peft_type", "LORA"},
          {"task_type", names.peft},
          {"base_model_name_or_path", std::filesystem::absolute(model.folder).string()},
          {"r", options.lora.rank},
          {"lora_alpha", options.lora.alpha},
          {"lora_dropout", options.lora.dropout},
          {"target_modules",
           all ? wrapped_module_names(model.config, head_of(model.task), options) : options.lora.targets},
          {"modules_to_save", saved.empty() ? Json() : Json(saved)},
          {"bias", "none"},
          {"fan_in_fan_out", model.config.architecture == model::Architecture::Gpt2},
          {"inference_mode", true},
          {"init_lora_weights", true},
          {"use_rslora", options.lora.rank_stabilised},
          {"use_dora", false}};
}

// An adapter has no config.json that could name the classes.
void write_label_names(const std::vector<std::string>& names, const std::filesystem::path& folder) {
  Json labels = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) labels[std::to_string(i)] = names[i];
  write_file_atomic(folder / "labels.json", Json{{"id2label", labels}}.dump(2) + "\n");
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
    if (!model.label_names.empty()) write_label_names(model.label_names, folder);
  } else {
    write_file_atomic(folder / "config.json", trained_config(model).dump(2) + "\n");
  }
  copy_tokenizer(model.folder, folder);
}

}  // namespace batchwright::engine
