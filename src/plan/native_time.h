#pragma once

#include "hardware/gpu.h"
#include "plan/batch_arithmetic.h"
#include "plan/request.h"
#include "plan/shape.h"
#include "plan/time.h"

namespace batchwright::plan {

// Seconds of one optimizer step of batchwright-engine on a CPU. Counted from its passes (engine/encoder.cc,
// engine/linear.cc): no product of a frozen weight's gradient, none for the input of the first layer's
// projections, the last layer of a classifier beyond keys and values for the first token alone. A micro-batch
// of at least as many examples as threads is shared by them; smaller ones run side by side.
TimeParts native_time(const ModelShape& shape, const Request& request, const hardware::Device& device,
                      const Split& split);

}  // namespace batchwright::plan
