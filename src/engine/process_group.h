#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/memory.h"
#include "engine/world.h"

namespace batchwright::engine {

// The processes that train together, one a device: sums over all of them, on c10d's Gloo (CPU memory) or NCCL
// (CUDA memory); gradients through shared memory (engine/shared_sum.h) where all ranks are on one machine.
// Every rank must call the same operations in the same order.
//
// When a rank dies, hangs or cannot be reached (engine/peer_watch.h), no operation returns: on_lost is called
// with an error that names it, on the thread that noticed, and the process ends. To unwind instead would free
// memory that the backend's threads still write to.
class ProcessGroup {
 public:
  using OnLost = std::function<void(const Error&)>;
  // Meets the others; throws Error naming the ranks that did not come.
  static std::unique_ptr<ProcessGroup> join(const World& world, DeviceKind device, OnLost on_lost);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;

  int rank() const { return world_.rank; }
  int size() const { return world_.size; }
  bool leads() const { return world_.rank == 0; }  // rank 0 writes files and speaks for all
  const World& world() const { return world_; }

  // Sums device memory over all ranks in place; all ranks get the same bits.
  void sum(float* values, std::int64_t count);
  // The same, while this process goes on computing; finish_sums() waits for all that were begun.
  void begin_sum(float* values, std::int64_t count);
  void finish_sums();
  // The same for host memory, whatever the device.
  void sum(std::vector<double>& values);
  // Every rank's `own` (host memory, as many on each), in the order of ranks.
  std::vector<double> gather(std::span<const double> own);
  // Whether any rank says yes.
  bool any(bool own);
  // Rank 0's, on every rank.
  void broadcast(float* values, std::int64_t count);
  std::string broadcast(const std::string& text);

  // A piece of work is done (PeerWatch must see progress). Any thread may call it.
  void progress();
  // While it lives, this rank reads or writes files and cannot report progress.
  class Busy {
   public:
    explicit Busy(ProcessGroup* group);  // may be nullptr: a process alone
    ~Busy();
    Busy(const Busy&) = delete;

   private:
    ProcessGroup* group_;
  };

  // Tells the others that this rank ends with this error.
  void fail(const std::string& message);
  // All ranks are done: waits for all.
  void leave();

 private:
  struct Impl;
  ProcessGroup(const World& world, std::unique_ptr<Impl> impl);

  World world_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace batchwright::engine
