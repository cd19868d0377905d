#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/prepared_input.h"
#include "tune/tuner.h"

namespace batchwright::cli {

// A tuning with our own engine, as `tune` and `train --split auto` ask for it.
struct TuningPlan {
  PreparedInput input;
  run::TrainingOptions options;
  std::vector<std::int64_t> devices = {1};  // the numbers of devices to try
  bool exhaustive = false, allow_inexact = false, overwrite = false;
  bool use_cache = true;  // what was answered before is not measured again, unless overwrite asks for it
  std::int64_t micro_tokens = 0;  // the one token budget to time beside the splits; 0: choose some
  std::optional<double> budget_seconds;
  std::filesystem::path run_folder;  // empty: named after the request
};

struct TuningResult {
  tune::Decision decision;
  Json document;  // result.json with the folder and the warnings
  std::filesystem::path folder;
  bool interrupted = false;
  std::vector<std::string> remedies;  // when nothing fits: what would, measured
  std::optional<std::int64_t>
      planned_steps;                    // of the training that the options describe; of a script not known
  std::int64_t memory_limit_bytes = 0;  // that the trials ran under; 0: none
};

TuningResult tune_with_engine(const TuningPlan& plan, InterruptGuard& interrupt, Progress& progress);

}  // namespace batchwright::cli
