#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "engine/rendezvous.h"

namespace batchwright::engine {

using Backend = c10::intrusive_ptr<c10d::Backend>;

// Connects all ranks with each other, within `patience`; `prefix` keeps the keys of two groups on one store
// apart. Gloo's network interface is GLOO_SOCKET_IFNAME's, else loopback when all ranks are on one machine,
// else the one that this machine's name resolves to: as torch.distributed chooses it.
Backend connect_gloo(const Store& store, const World& world, const std::string& prefix,
                     std::chrono::seconds patience);
// Throws Error(Unsupported) where this build's torch has no NCCL.
Backend connect_nccl(const Store& store, const World& world, const std::string& prefix);

}  // namespace batchwright::engine
