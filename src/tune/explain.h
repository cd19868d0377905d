#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/statistics.h"
#include "hardware/calibration.h"
#include "run/trial.h"

namespace batchwright::tune {

// Where the step time of each split goes:
//   step = a * (fixed + slope * padded_tokens_per_micro_step / efficiency) + per_step + input + collective
//          + residual
// per_step, input and collective are the optimizer, input and collective phases that the worker reported.
// efficiency is how fast this machine multiplies matrices of the split's row count, as `batchwright
// calibrate` measured it, relative to its best; without a calibration it is 1, and a split whose matrices are
// too small to fill the device shows as a residual. fixed and slope are the line that fits all splits with
// the least squared relative error, neither below zero; their intervals come from those of the step times.
struct Explanation {
  std::optional<double> fixed_seconds_per_micro_step, seconds_per_token, seconds_per_step;
  std::optional<Interval> fixed_interval, token_interval;
  struct RowCost {
    std::int64_t rows = 0;  // examples in a micro-batch
    double relative = 0;    // measured compute per padded token, relative to the cheapest split's
  };
  std::vector<RowCost> row_cost;
  struct Efficiency {
    run::Split split;
    double rows = 0;        // of its matrices: padded tokens in a micro-step; 0: not known
    double efficiency = 0;  // of the best rate, in (0, 1]
  };
  std::vector<Efficiency> matrix_efficiency;  // empty: not known
  std::string efficiency_source;              // "calibration" or "device busy time"
  // How each phase grows: a * seconds_per_micro_step + seconds_per_step, by least squares over the splits.
  struct PhaseCost {
    std::string phase;
    double seconds_per_micro_step = 0, seconds_per_step = 0;
  };
  std::vector<PhaseCost> phase_costs;
  struct Idle {
    run::Split split;
    double seconds = 0, share = 0;  // of a step in which the device has nothing to do
  };
  std::vector<Idle> device_idle;
  std::map<std::string, double> shares;  // of the recommended split's step; they add up to 1
  struct Residual {
    run::Split split;
    double mid = 0, low = 0, high = 0;  // seconds a step that the line leaves unexplained
  };
  std::vector<Residual> residuals;
  struct NotSeparable {
    std::string part, reason;
  };
  std::vector<NotSeparable> not_separable;
  // What would shorten a step of the recommended split beside its cut.
  struct Recommendation {
    std::string cause;   // "input", "padding", "optimizer", "residual", "collective"
    double seconds = 0;  // a step, measured: the most that the change can save
    double share = 0;    // of the step
    std::string change;
  };
  std::vector<Recommendation> recommendations;
  std::string sentence;  // what a person can repeat; empty when too little is known
};

struct ExplainOptions {
  const hardware::Calibration* calibration = nullptr;  // of the machine that ran the trials; null: none
  bool users_script = false;  // recommend changes to the script, which our engine does not need
};

// Splits ran on different windows when some were dropped early: their times are compared on the windows that
// each shares with the recommended split.
Explanation explain(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                    std::optional<run::Split> recommended, const ExplainOptions& options = {});

Json to_json(const Explanation& explanation);

}  // namespace batchwright::tune
