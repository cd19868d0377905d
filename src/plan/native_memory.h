#pragma once

#include "hardware/gpu.h"
#include "plan/batch_arithmetic.h"
#include "plan/request.h"
#include "plan/shape.h"

namespace batchwright::plan {

// What batchwright-engine allocates (fp32, on the CPU). Not an estimate: the engine keeps the activations of
// a micro-batch in one arena a thread, and this counts what its passes take from it (engine/encoder.cc,
// engine/decoder.cc and engine/linear.cc, in their order). One thread's share of a micro-batch is `examples`
// rows of the batch.
struct NativeMemory {
  double weights = 0, adapters = 0, gradients = 0, optimizer_state = 0;
  double kept = 0;       // activations that wait for the backward pass
  double temporary = 0;  // workspace of one layer
};

// Whether the engine has this architecture with this head, so that native_memory counts it.
bool counts_natively(const ModelShape& shape);

// Memory over one optimizer step of `split`, every example of the longest length, on the device's threads:
// a micro-batch of at least as many examples as threads is shared by them, smaller ones run side by side.
NativeMemory native_memory(const ModelShape& shape, const Request& request, const hardware::Device& device,
                           const Split& split);

}  // namespace batchwright::plan
