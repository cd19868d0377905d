#include "base/error.h"
#include "engine/collective_backend.h"

namespace batchwright::engine {

Backend connect_nccl(const Store&, const World&, const std::string&) {
  throw Error(ErrorKind::Unsupported, "--devices", "this build's torch has no NCCL, which CUDA devices need",
              "Build the engine with a CUDA torch: scripts/build_cuda");
}

}  // namespace batchwright::engine
