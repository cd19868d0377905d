#include <ATen/Context.h>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/cpu_ops.h"
#include "engine/torch_ops.h"

namespace batchwright::engine {

std::unique_ptr<Ops> make_ops(const std::string& device) {
  if (device == "cpu") return std::make_unique<CpuOps>();
  if (device == "torch-cpu") return std::make_unique<TorchOps>(DeviceKind::Cpu);
  if (device != "cuda") {
    throw Error(ErrorKind::Usage, "--device", fmt::format("'{}' is not a device", device),
                "It is cpu or cuda");
  }
  if (!at::hasCUDA()) {
    throw Error(ErrorKind::Unsupported, "--device", "this machine's torch sees no CUDA device",
                "Leave --device out to train on the CPU");
  }
  return std::make_unique<TorchOps>(DeviceKind::Cuda);
}

}  // namespace batchwright::engine
