#include "engine/head.h"

#include <algorithm>

#include "base/error.h"
#include "engine/classifier_head.h"
#include "engine/declare.h"
#include "engine/language_model_head.h"
#include "engine/span_head.h"

namespace batchwright::engine {

model::Head head_of(data::Task task) {
  switch (task) {
    case data::Task::SequenceClassification:
      return model::Head::SequenceClassification;
    case data::Task::TokenClassification:
      return model::Head::TokenClassification;
    case data::Task::QuestionAnswering:
      return model::Head::QuestionAnswering;
    case data::Task::CausalLm:
      return model::Head::CausalLm;
  }
  throw Error(ErrorKind::Internal, "task", "is none that is known");
}

std::vector<model::Module> head_modules(const model::ModelConfig& config, data::Task task,
                                        std::int64_t classes) {
  std::vector<model::Module> modules;
  for (const model::Module& module : model::list_modules(config, head_of(task), classes)) {
    if (module.part == model::Part::Head || module.part == model::Part::Pooler) modules.push_back(module);
  }
  return modules;
}

namespace {

// A language model's head is no new part: like the body it trains in full fine-tuning, or when it is named.
bool trains(const model::Module& module, const run::TrainingOptions& options) {
  const auto& named = options.lora.extra_trained;
  return options.method == run::Method::Full ||
         std::any_of(named.begin(), named.end(),
                     [&](const std::string& name) { return ends_as(module.name, name); });
}

// Transformers keeps the body of these under another name when it answers questions.
void refuse_renamed_body(const model::ModelConfig& config) {
  using model::Architecture;
  for (const Architecture renamed : {Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3}) {
    if (config.architecture != renamed) continue;
    throw Error(ErrorKind::Unsupported, "--task",
                "question-answering is not trained with " + config.model_type,
                "Use an encoder, GPT-2 or Mistral");
  }
}

}  // namespace

std::unique_ptr<Head> make_head(const model::ModelConfig& config, const run::TrainingOptions& options,
                                data::Task task, std::int64_t classes, ParameterId word_embeddings,
                                Parameters& parameters) {
  const auto modules = head_modules(config, task, classes);
  switch (task) {
    case data::Task::SequenceClassification:
      return std::make_unique<ClassifierHead>(
          config, options, modules,
          model::is_encoder(config.architecture) ? WantedRows::First : WantedRows::Last, parameters);
    case data::Task::TokenClassification:
      return std::make_unique<ClassifierHead>(config, options, modules, WantedRows::Labelled, parameters);
    case data::Task::QuestionAnswering:
      refuse_renamed_body(config);
      return std::make_unique<SpanHead>(config, options, modules.back(), parameters);
    case data::Task::CausalLm: {
      const bool train = trains(modules.back(), options);
      if (modules.back().tied &&
          parameters.at(word_embeddings).trainable != (options.method == run::Method::Full)) {
        throw Error(ErrorKind::Unsupported, "--lora-extra-trained",
                    "names the word embeddings, which are also the head",
                    "The engine trains tied weights in full fine-tuning only");
      }
      return std::make_unique<LanguageModelHead>(modules.back(), word_embeddings, train, parameters);
    }
  }
  throw Error(ErrorKind::Internal, "task", "is none that is known");
}

}  // namespace batchwright::engine
