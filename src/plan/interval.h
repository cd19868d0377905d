#pragma once

#include "hardware/gpu.h"
#include "plan/request.h"
#include "plan/time.h"

namespace batchwright::plan {

// How far a prediction can be from the truth, as factors on it: the truth lies in [mid * low, mid * high] for
// nine of ten runs. Learnt by bench/plan_widths.py from the residuals of whole sources, each counting alike,
// by what is known before a run and makes a prediction harder: whether weights are sharded, whether the
// counter holds the allocator's cache, whether lengths vary, the method; for the time, whether the host or
// the device bounds the step. docs/benchmarks.md says how they hold sources that they were not learnt from.
struct Factors {
  double low = 1, high = 1;
};

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter);
// The same for what a process needs at least, which decides whether it fits. Narrower, since near the limit
// the allocator gives back what it kept: of 651 published runs, 108 of which ran out of memory, these call
// none of those `yes` and none of the others `no`.
Factors fit_factors(const Request& request, const hardware::Device& device);
// Wider the more of the step is the host's: how fast it starts kernels is in no data sheet.
Factors time_factors(const Request& request, const hardware::Device& device, const TimeParts& parts);

}  // namespace batchwright::plan
