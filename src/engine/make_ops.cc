#include <ATen/Context.h>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/cpu_ops.h"
#include "engine/precision.h"
#include "engine/torch_ops.h"

namespace batchwright::engine {

namespace {

std::unique_ptr<Ops> torch_ops(DeviceKind device, const Precision& precision) {
  if (precision.products == Number::Float32) return std::make_unique<TorchOps>(device);
  return make_rounded_torch_ops(device, precision);
}

}  // namespace

std::unique_ptr<Ops> make_ops(const std::string& device, const std::string& precision_name) {
  const Precision precision = parse_precision(precision_name);
  if (device == "cpu") {
    if (precision.products == Number::Float32) return std::make_unique<CpuOps>();
    return make_rounded_cpu_ops(best_kernels(), precision);
  }
  if (device == "torch-cpu") return torch_ops(DeviceKind::Cpu, precision);
  if (device != "cuda") {
    throw Error(ErrorKind::Usage, "--device", fmt::format("'{}' is not a device", device),
                "It is cpu or cuda");
  }
  if (!at::hasCUDA()) {
    throw Error(ErrorKind::Unsupported, "--device", "this machine's torch sees no CUDA device",
                "Leave --device out to train on the CPU");
  }
  return torch_ops(DeviceKind::Cuda, precision);
}

}  // namespace batchwright::engine
