#pragma once

namespace batchwright::engine {

// From here on this process's tensors and collectives use this GPU, counted among those that it may see.
// Throws Unsupported when torch sees no such device.
void use_cuda_device(int index);

}  // namespace batchwright::engine
