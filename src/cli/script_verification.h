#pragma once

#include <optional>

#include "base/interrupt.h"
#include "base/progress.h"
#include "run/script.h"
#include "tune/equivalence.h"

namespace batchwright::cli {

// `batchwright verify -- CMD`: the command at two or more splits from the same seed.
struct ScriptVerificationPlan {
  run::ScriptCommand script;
  std::int64_t effective_batch = 0, devices = 1, steps = 4;
  std::int64_t memory_limit_bytes = 0;
  std::optional<run::Split> split;  // compare this one only; otherwise about 4 and 16 accumulation steps
  bool keep_dropout = false, overwrite = false;
  std::filesystem::path run_folder;  // empty: named after the request
};

struct ScriptVerification {
  tune::Equivalence equivalence;
  Json document;
  std::filesystem::path folder;
};

ScriptVerification verify_script(const ScriptVerificationPlan& plan, const InterruptGuard& interrupt,
                                 Progress& progress);

// The table and the sentences for people.
std::string describe(const ScriptVerification& verification);

}  // namespace batchwright::cli
