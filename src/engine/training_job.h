#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "data/sampler.h"
#include "data/token_file.h"
#include "engine/loaded_model.h"
#include "engine/window.h"
#include "run/options.h"

namespace batchwright::engine {

// What every mode of the program needs from a job file: the data, its hold-out, the order of windows, the
// model.
struct TrainingJob {
  explicit TrainingJob(const run::EngineJob& job);

  const run::EngineJob& job;
  data::TokenFile tokens;
  data::HoldOut rows;
  data::Sampler sampler;
  std::unique_ptr<LoadedModel> model;

  std::int64_t total_steps() const;  // options.steps, or epochs times the steps of an epoch, rounded up
  Cut cut() const;                   // of job.split and options.layout
};

data::Layout layout_of(const std::string& name);  // "auto" is packed: the least work for the same gradient

}  // namespace batchwright::engine
