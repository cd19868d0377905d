#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "engine/rendezvous.h"

namespace batchwright::engine {

// How long what may last before a rank counts as lost.
struct WatchTimes {
  std::chrono::milliseconds beat{1000};              // between two signs of life
  std::chrono::milliseconds silence{15000};          // without a sign of life, or all waiting for one sum
  std::chrono::milliseconds first_progress{300000};  // before the first piece of work is done
  std::chrono::milliseconds least_progress{20000};   // between two pieces, once one is done, and never less
  int slowest_factor = 10;                           // than this many times the slowest so far
};

// Sees that every rank still works, because a collective that waits for a lost rank waits for ever and cannot
// say for whom. A thread of each rank gives a sign of life through the store; rank 0 judges all, the others
// judge rank 0 and read what was found. A rank whose work stands still says so itself.
class PeerWatch {
 public:
  // What this process does: Working must call progress() now and then; Waiting is for others; Busy is work
  // that cannot report progress (reading or writing files).
  enum class Activity { Working, Waiting, Busy };

  PeerWatch(const Rendezvous& rendezvous, const World& world, WatchTimes times = {});
  ~PeerWatch();
  PeerWatch(const PeerWatch&) = delete;

  void set(Activity activity);
  // A piece of work is done; may be called by any thread.
  void progress();
  // What is lost, naming the rank; nothing while all is well.
  std::optional<std::string> verdict() const;
  // Tells the others that this rank fails, and why.
  void fail(const std::string& message);
  // Rank 0 serves the store, and the others read there what was found: it waits until they have.
  void let_others_read() const;
  // This rank is done: from now on its silence means nothing.
  void leave();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // the thread's too: it may hang in a store that does not answer
};

}  // namespace batchwright::engine
