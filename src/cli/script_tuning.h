#pragma once

#include "cli/tuning.h"
#include "run/script.h"

namespace batchwright::cli {

// A tuning of a user's own command.
struct ScriptTuningPlan {
  run::ScriptCommand script;
  std::int64_t effective_batch = 0, devices = 1;
  std::int64_t memory_limit_bytes = 0;
  bool exhaustive = false, allow_inexact = false, overwrite = false, use_cache = true;
  std::optional<double> budget_seconds;
  std::filesystem::path run_folder;  // empty: named after the request
};

TuningResult tune_script(const ScriptTuningPlan& plan, InterruptGuard& interrupt, Progress& progress);

}  // namespace batchwright::cli
