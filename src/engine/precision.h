#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/kernels.h"
#include "engine/ops.h"

namespace batchwright::engine {

// In which numbers a training computes and keeps its weights (--precision):
//   fp32       everything in float32
//   bf16       products in bfloat16 with float32 sums, as torch.autocast; weights, gradients, moments in
//   float32 fp16       the same in float16, with a loss scale (LossScaler) pure-bf16  as bf16, and weights,
//   gradients and moments are bfloat16 numbers as well
enum class Number { Float32, BFloat16, Float16 };
struct Precision {
  Number products = Number::Float32;
  Number stored = Number::Float32;
};
Precision parse_precision(const std::string& name);  // throws Error(Usage)

// x rounded to the nearest number of that type, ties to even; past float16's range it is infinite. out may be
// x.
void round_to(Number number, const float* x, std::int64_t count, float* out);

// CpuOps whose products are rounded as torch.autocast rounds them: both factors and the result are 16-bit
// numbers, sums are float32 (with beta, the product is rounded and then added). Kept in float32 arrays, so it
// saves neither time nor memory on a CPU: it is there to check what a device with 16-bit units will compute.
std::unique_ptr<Ops> make_rounded_cpu_ops(const Kernels& kernels, Precision precision);
// The same in ATen calls, which use a device's 16-bit units.
std::unique_ptr<Ops> make_rounded_torch_ops(DeviceKind device, Precision precision);

}  // namespace batchwright::engine
