#pragma once

#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "engine/world.h"

namespace batchwright::engine {

using Store = c10::intrusive_ptr<c10d::Store>;

// Of what torch says; the lines after it are a stack.
std::string first_line(const std::string& text);

// Who a rank is, for messages and to see whether its process still lives.
struct PeerIdentity {
  std::string host, process_space;  // process_space: equal where process numbers mean the same
  long process_id = 0;

  std::string name(int rank) const;  // "rank 1 (process 4711 on host gpu3)"
  // Whether the process is known to be gone; false when it lives or cannot be seen from here.
  bool is_gone() const;
};

PeerIdentity own_identity();

// Meets the others: rank 0 (or torchrun's own process) serves a c10d TCPStore, the others connect to it, and
// everybody waits for everybody. Throws Error(Internal) naming the ranks that did not arrive in `patience`.
struct Rendezvous {
  Store store;
  std::vector<PeerIdentity> peers;  // by rank
};
Rendezvous meet(const World& world, std::chrono::seconds patience);

}  // namespace batchwright::engine
