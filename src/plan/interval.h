#pragma once

#include "hardware/gpu.h"
#include "plan/request.h"
#include "plan/time.h"

namespace batchwright::plan {

// How far a prediction can be from the truth, as factors on it: the truth lies in [mid * low, mid * high] for
// nine of ten runs. Set from the residuals that scripts/bench plan prints when whole sources are left out
// (bench/plan_widths.py), by what makes a prediction harder; narrower than its quantiles where one source
// alone stretches them (runs of 2022's versions, compiled runs), which docs/benchmarks.md says.
struct Factors {
  double low = 1, high = 1;
};

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter);
// Wider the more of the step is the host's: how fast it starts kernels is in no data sheet.
Factors time_factors(const Request& request, const hardware::Device& device, const TimeParts& parts);

}  // namespace batchwright::plan
