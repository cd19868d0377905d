#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "engine/collective_backend.h"

namespace batchwright::engine {

Backend connect_nccl(const Store& store, const World& world, const std::string& prefix) {
  auto options = c10d::ProcessGroupNCCL::Options::create();
  // PeerWatch decides how long is too long; NCCL's own watchdog would end the process without naming a rank.
  options->timeout = std::chrono::hours(24 * 7);
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(c10::make_intrusive<c10d::PrefixStore>(prefix, store),
                                                     world.rank, world.size, options);
}

}  // namespace batchwright::engine
