#include "engine/cuda_device.h"

#include <ATen/Context.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include "base/error.h"

namespace batchwright::engine {

void use_cuda_device(int index) {
  if (!at::hasCUDA()) {
    throw Error(ErrorKind::Unsupported, "--device", "this machine's torch sees no CUDA device",
                "Leave --device out to train on the CPU");
  }
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  if (index >= guard.deviceCount()) {
    throw Error(ErrorKind::Unsupported, "--devices",
                fmt::format("rank {} of this machine has no GPU: torch sees {}", index, guard.deviceCount()));
  }
  guard.setDevice(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index)));
}

}  // namespace batchwright::engine
