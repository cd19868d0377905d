#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/trial.h"

namespace batchwright::tune {

// Where the step time of each split goes:
//   step = a * (fixed + slope * padded_tokens_per_micro_step) + per_step + input + collective + residual
// per_step, input and collective are the optimizer, input and collective phases that the worker reported.
// fixed and slope are the line that fits all splits with the least squared relative error, neither below
// zero. A micro-batch whose matrices are too small to fill the device shows as a residual of its split;
// telling that apart from the fixed cost needs a matrix cost measured on its own, so row_cost gives the
// measured compute per token, and the cause of its shape stands in not_separable.
struct Explanation {
  std::optional<double> fixed_seconds_per_micro_step, seconds_per_token, seconds_per_step;
  struct RowCost {
    std::int64_t rows = 0;  // examples in a micro-batch
    double relative = 0;    // measured compute per padded token, relative to the cheapest split's
  };
  std::vector<RowCost> row_cost;
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
  std::string sentence;  // what a person can repeat; empty when too little is known
};

// Splits ran on different windows when some were dropped early: their times are compared on the windows that
// each shares with the recommended split.
Explanation explain(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                    std::optional<run::Split> recommended);

Json to_json(const Explanation& explanation);

}  // namespace batchwright::tune
