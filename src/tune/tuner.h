#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/progress.h"
#include "run/run_folder.h"
#include "run/trial_runner.h"
#include "tune/cache.h"
#include "tune/decision.h"

namespace batchwright::tune {

struct TuneLimits {
  // From the start of the search, start-up of the worker included. It ends a running trial, unless no split
  // is measured yet: the first measurement is always let finish.
  std::optional<double> budget_seconds;
  InterruptGuard* guard = nullptr;  // what the workload waits under; null: the budget is kept between trials
};

// Runs trials until the search is settled, the budget ends or a signal asks to stop, each recorded in the
// folder before the next begins, and writes result.json. Trials already in the folder count as done. `cache`:
// answers an empty folder's question at once when it was settled before, and keeps this one's answer; null:
// none.
struct TuneOutcome {
  Decision decision;
  bool interrupted = false;
};

TuneOutcome run_tuning(const SearchOptions& options, std::span<const run::Split> splits,
                       run::Workload& workload, run::RunFolder& folder, const TuneLimits& limits,
                       Progress& progress, const TuningCache* cache = nullptr,
                       std::function<double()> clock = {});

}  // namespace batchwright::tune
