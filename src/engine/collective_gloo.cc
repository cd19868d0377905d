#include <cstdlib>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "engine/collective_backend.h"

namespace batchwright::engine {
namespace {

using c10d::ProcessGroupGloo;

std::shared_ptr<gloo::transport::Device> network_device(const World& world) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface != nullptr && *interface != '\0')
    return ProcessGroupGloo::createDeviceForInterface(interface);
  if (world.one_machine()) return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  return ProcessGroupGloo::createDefaultDevice();
}

}  // namespace

Backend connect_gloo(const Store& store, const World& world, const std::string& prefix,
                     std::chrono::seconds patience) {
  auto options = ProcessGroupGloo::Options::create(patience);
  options->devices.push_back(network_device(world));
  options->threads =
      1;  // sums are short and run in order; more threads would only take cores from the training
  auto backend = c10::make_intrusive<ProcessGroupGloo>(c10::make_intrusive<c10d::PrefixStore>(prefix, store),
                                                       world.rank, world.size, options);
  // From here on PeerWatch decides how long is too long: a rank may compute for hours before it joins a sum.
  backend->setTimeout(std::chrono::hours(24 * 7));
  return backend;
}

}  // namespace batchwright::engine
