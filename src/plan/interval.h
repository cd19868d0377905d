#pragma once

#include "hardware/gpu.h"
#include "plan/request.h"

namespace batchwright::plan {

// How far a prediction can be from the truth, as factors on it: the truth lies in [mid * low, mid * high] for
// nine of ten runs. Widths were set by hand from the errors on all published rows (scripts/bench plan prints
// them by source), not learnt by leaving sources out; they name what makes a prediction harder.
struct Factors {
  double low = 1, high = 1;
};

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter);
Factors time_factors(const Request& request, const hardware::Device& device);

}  // namespace batchwright::plan
