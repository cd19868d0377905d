#pragma once

#include "plan/planner.h"

namespace batchwright::plan {

// Yes only when the high end of the prediction leaves room, no only when its low end does not; between them a
// measurement must decide (`batchwright tune`).
Fits fits_within(const MemoryPrediction& memory, const Request& request, const hardware::Device& device,
                 std::int64_t limit);

// Sets recommended, reason and largest_micro_batch_that_fits: the fastest exact split that fits with the
// request's headroom; among those within 2 % of it, the one with the least memory.
void recommend(Plan& plan);

// Sets learning_rate, warmup and warnings.
void advise(Plan& plan, const ModelShape& shape);

}  // namespace batchwright::plan
