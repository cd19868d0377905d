#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/rendezvous.h"

namespace batchwright::engine {

// Sums over ranks that can map each other's memory: processes of one user on one machine. Through the
// loopback network every number is copied four times and added in between; here it is copied twice. Each rank
// has a window of memory that all others read: numbers go through it in chunks, each rank sums its share of a
// chunk over all windows, in the order of ranks, and reads the other shares from theirs. So all ranks get the
// same bits.
//
// One thread at a time; a call never waits. Ranks must begin the same sums in the same order.
class SharedSum {
 public:
  // Puts own numbers beside those of all ranks, in their order (ProcessGroup::gather).
  using Gather = std::function<std::vector<double>(std::span<const double>)>;
  // nullptr, on every rank, where one of them cannot see another's memory.
  static std::unique_ptr<SharedSum> connect(int rank, const std::vector<PeerIdentity>& peers,
                                            const Gather& gather);
  ~SharedSum();
  SharedSum(const SharedSum&) = delete;

  // From now until done(), the values are the sum's; then they are the sum over all ranks.
  void begin(float* values, std::int64_t count);
  // Does what can be done without waiting for another rank; whether that was anything.
  bool advance();
  bool done() const { return copied_out_ == begun_; }

 private:
  struct Window;
  struct Chunk {
    float* values = nullptr;
    std::int64_t count = 0;
  };

  explicit SharedSum(int rank) : rank_(rank) {}
  Window& own() const { return *windows_[static_cast<std::size_t>(rank_)]; }
  std::int64_t least(std::atomic<std::int64_t> Window::* count) const;
  void copy_in();
  void sum_share();
  void copy_out();

  const int rank_;
  std::vector<Window*> windows_;                                          // of all ranks, in their order
  std::deque<Chunk> chunks_;                                              // from copied_out_ on
  std::int64_t begun_ = 0, copied_in_ = 0, summed_ = 0, copied_out_ = 0;  // chunks, since the start
};

}  // namespace batchwright::engine
