#include "engine/head.h"

#include "engine/classifier_head.h"
#include "model/parameters.h"

namespace batchwright::engine {

std::unique_ptr<Head> make_head(const model::ModelConfig& config, const run::TrainingOptions& options,
                                std::int64_t classes, Parameters& parameters) {
  std::vector<model::Module> modules;
  for (const model::Module& module :
       model::list_modules(config, model::Head::SequenceClassification, classes)) {
    if (module.part == model::Part::Head || module.part == model::Part::Pooler) modules.push_back(module);
  }
  const WantedRows wants = model::is_encoder(config.architecture) ? WantedRows::First : WantedRows::Last;
  return std::make_unique<ClassifierHead>(config, options, modules, wants, parameters);
}

}  // namespace batchwright::engine
