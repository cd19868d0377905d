#pragma once

#include <cstdint>

#include "hardware/gpu.h"
#include "plan/request.h"

namespace batchwright::plan {

// The arithmetic that products run in on this device; narrower where the device lacks the one asked for.
hardware::Arithmetic arithmetic_of(const Request& request, const hardware::Device& device);

// Floating-point operations a second that a product of [rows, inner] by [inner, columns] reaches.
// The device's best rate, times how well its tiles fill the multiprocessors (a last wave of tiles that is
// nearly empty costs as much as a full one), times a ramp for products too small to hide their start.
double gemm_rate(const hardware::Device& device, hardware::Arithmetic arithmetic, double rows, double columns,
                 double inner);

// The best rate of a large product: what was measured, or the share of the data sheet that devices of this
// kind reach.
double best_gemm_rate(const hardware::Device& device, hardware::Arithmetic arithmetic);

}  // namespace batchwright::plan
