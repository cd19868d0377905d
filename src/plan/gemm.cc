#include "plan/gemm.h"

#include <algorithm>
#include <cmath>

namespace batchwright::plan {

using hardware::Arithmetic;
using hardware::Device;

Arithmetic arithmetic_of(const Request& request, const Device& device) {
  switch (request.compute) {
    case ComputeType::Fp32:
      return Arithmetic::Fp32;
    case ComputeType::Tf32:
      return device.tf32_flops > 0 ? Arithmetic::Tf32 : Arithmetic::Fp32;
    case ComputeType::Bf16:
      if (device.bf16_flops > 0) return Arithmetic::Bf16;
      // Devices without bf16 run it as fp32 (Turing, Volta).
      return Arithmetic::Fp32;
    case ComputeType::Fp16:
      return device.fp16_flops > 0 ? Arithmetic::Fp16 : Arithmetic::Fp32;
  }
  return Arithmetic::Fp32;
}

namespace {

// What a whole run reaches of the best product ever measured: power and clocks, strides, other kernels'
// caches. Ampere: fitted on llm-foundry's and vTrain's A100 runs. Hopper, Blackwell, CDNA3: TorchTitan's
// Llama-3-8B (pytorch/ao): 296, 400 and 259 TFLOP/s in the linear layers.
double run_share(const Device& device) {
  if (device.architecture == "Hopper" || device.architecture == "CDNA3") return 0.62;
  if (device.architecture == "Blackwell") return 0.5;
  return 0.87;
}

// GeForce cards accumulate in fp32 at half of the tensor cores' rate (about twice their plain fp32): neither
// power nor memory holds them back, and their clocks exceed the sheet's. lambdal/deeplearning-benchmark and
// AnswerDotAI/fsdp_qlora on RTX 3090 and 4090 reach 0.80 to 0.92 of it.
bool half_rate(const Device& device) {
  const double sheet = std::max(device.bf16_flops, device.fp16_flops);
  return sheet > 0 && sheet < 2.5 * device.fp32_flops;
}

// Plain fp32 runs without tensor cores, near its sheet (bert-large on a V100, Transformers' page on training
// on one GPU). A card whose power cap holds its tensor cores below half of their sheet is held back here too,
// by less.
double plain_share(const Device& device) {
  constexpr double kReached = 0.9;
  const double sheet = std::max(device.bf16_flops, device.fp16_flops);
  if (!device.measured_gemm_flops || sheet <= 0) return kReached;
  const double measured = *device.measured_gemm_flops / sheet;
  return measured < 0.5 ? (kReached + measured) / 2 : kReached;
}

// Between the rows that were measured, linear in their logarithm. Every thread multiplies its own share.
double cpu_rate(const Device& device, double rows) {
  const auto& curve = device.rates_by_rows;
  if (curve.empty()) return device.fp32_flops;
  const double share = rows / std::max(1, device.multiprocessors);
  if (share <= curve.front().first) return curve.front().second;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    if (share > curve[i].first) continue;
    const double at = std::log(share / curve[i - 1].first) / std::log(curve[i].first / curve[i - 1].first);
    return curve[i - 1].second + at * (curve[i].second - curve[i - 1].second);
  }
  return curve.back().second;
}

}  // namespace

double best_gemm_rate(const Device& device, Arithmetic arithmetic) {
  if (device.is_cpu()) return device.flops(arithmetic);
  const double sheet = device.flops(arithmetic);
  if (arithmetic == Arithmetic::Fp32) return plain_share(device) * sheet;
  if (!device.measured_gemm_flops) return (half_rate(device) ? 0.92 : 0.8 * run_share(device)) * sheet;
  // Measured in 16 bits: the same share is reached in the other types.
  const double measured_on = device.bf16_flops > 0 ? device.bf16_flops : device.fp16_flops;
  const double share = measured_on > 0 ? std::min(1.0, *device.measured_gemm_flops / measured_on) : 0.8;
  return share * run_share(device) * sheet;
}

double gemm_rate(const Device& device, Arithmetic arithmetic, double rows, double columns, double inner) {
  const double best = best_gemm_rate(device, arithmetic);
  if (device.is_cpu()) return cpu_rate(device, rows);
  if (device.multiprocessors <= 0) return best;
  // cuBLAS picks among tile sizes: 128 x 128 stands for them, and half of the loss is recovered by the
  // choice.
  const double tiles = std::ceil(rows / 128) * std::ceil(columns / 128);
  const double processors = device.multiprocessors;
  const double filled = tiles / (std::ceil(tiles / processors) * processors);
  const double padding =
      (rows / (std::ceil(rows / 128) * 128)) * (columns / (std::ceil(columns / 128) * 128));
  const double ramp = inner / (inner + 256);
  return best * (0.5 + 0.5 * filled) * std::max(padding, 0.05) * ramp;
}

}  // namespace batchwright::plan
