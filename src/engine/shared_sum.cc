#include "engine/shared_sum.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace batchwright::engine {
namespace {

constexpr std::int64_t kChunkFloats = (1 << 20) / 4;  // stays in a core's cache between its copies
constexpr std::int64_t kSlots = 8;                    // chunks that a rank may be ahead of the others

// The share of a chunk that a rank sums; whole cache lines, so that no two ranks write to one.
struct Share {
  std::int64_t begin, end;
};
Share share_of(std::int64_t count, std::int64_t rank, std::int64_t ranks) {
  const auto edge = [&](std::int64_t i) { return std::min(count, (count * i / ranks + 15) / 16 * 16); };
  return {edge(rank), edge(rank + 1)};
}

}  // namespace

// Zeroed memory is a valid empty window: the file that it maps begins so.
struct SharedSum::Window {
  // Chunks that this rank has written here, summed its share of, and read all shares of.
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> summed;
  alignas(64) std::atomic<std::int64_t> read;
  alignas(64) float slots[kSlots][kChunkFloats];

  float* slot(std::int64_t chunk) { return slots[chunk % kSlots]; }

  static Window* map(int file) {
    void* memory = ::mmap(nullptr, sizeof(Window), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Window*>(memory);
  }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "the counters are shared between processes");

std::unique_ptr<SharedSum> SharedSum::connect(int rank, const std::vector<PeerIdentity>& peers,
                                              const Gather& gather) {
  std::unique_ptr<SharedSum> result(new SharedSum(rank));
  // An anonymous file: it has no name that could be left behind, and no share of a small /dev/shm.
  const int file = ::memfd_create("batchwright-sums", MFD_CLOEXEC);
  const bool made = file >= 0 && ::ftruncate(file, sizeof(Window)) == 0;
  const double own_file = made ? file : -1;
  const std::vector<double> files = gather({&own_file, 1});
  const PeerIdentity& own = peers[static_cast<std::size_t>(rank)];
  bool all_seen = true;
  for (std::size_t i = 0; i < peers.size() && all_seen; ++i) {
    all_seen = files[i] >= 0 && peers[i].process_space == own.process_space && peers[i].host == own.host;
    if (!all_seen) break;
    const std::string path = fmt::format("/proc/{}/fd/{}", peers[i].process_id, static_cast<int>(files[i]));
    const int opened = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    Window* window = opened >= 0 ? Window::map(opened) : nullptr;
    if (opened >= 0) ::close(opened);
    if (window != nullptr) result->windows_.push_back(window);
    all_seen = window != nullptr;
  }
  const double flag = all_seen ? 1 : 0;
  const std::vector<double> flags = gather({&flag, 1});
  if (file >= 0) ::close(file);
  if (std::find(flags.begin(), flags.end(), 0.0) != flags.end()) return nullptr;
  return result;
}

SharedSum::~SharedSum() {
  for (Window* window : windows_) ::munmap(window, sizeof(Window));
}

void SharedSum::begin(float* values, std::int64_t count) {
  for (std::int64_t at = 0; at < count; at += kChunkFloats) {
    chunks_.push_back({values + at, std::min(kChunkFloats, count - at)});
    ++begun_;
  }
}

std::int64_t SharedSum::least(std::atomic<std::int64_t> Window::* count) const {
  std::int64_t least = begun_;
  for (Window* window : windows_) least = std::min(least, (window->*count).load(std::memory_order_acquire));
  return least;
}

bool SharedSum::advance() {
  bool moved = false;
  for (bool again = true; again; moved = moved || again) {
    again = false;
    if (copied_out_ < summed_ && copied_out_ < least(&Window::summed)) copy_out(), again = true;
    if (summed_ < copied_in_ && summed_ < least(&Window::written)) sum_share(), again = true;
    if (copied_in_ < begun_ && copied_in_ - least(&Window::read) < kSlots) copy_in(), again = true;
  }
  return moved;
}

void SharedSum::copy_in() {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(copied_in_ - copied_out_)];
  std::memcpy(own().slot(copied_in_), chunk.values, static_cast<std::size_t>(chunk.count) * sizeof(float));
  own().written.store(++copied_in_, std::memory_order_release);
}

void SharedSum::sum_share() {
  const Chunk& chunk = chunks_[static_cast<std::size_t>(summed_ - copied_out_)];
  const auto ranks = static_cast<std::int64_t>(windows_.size());
  const Share share = share_of(chunk.count, rank_, ranks);
  float* total = chunk.values;  // what it held is in the window
  std::copy(windows_[0]->slot(summed_) + share.begin, windows_[0]->slot(summed_) + share.end,
            total + share.begin);
  for (std::size_t i = 1; i < windows_.size(); ++i) {
    const float* other = windows_[i]->slot(summed_);
    for (std::int64_t at = share.begin; at < share.end; ++at) total[at] += other[at];
  }
  std::copy(total + share.begin, total + share.end, own().slot(summed_) + share.begin);
  own().summed.store(++summed_, std::memory_order_release);
}

void SharedSum::copy_out() {
  const Chunk& chunk = chunks_.front();
  const auto ranks = static_cast<std::int64_t>(windows_.size());
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    if (rank == rank_) continue;
    const Share share = share_of(chunk.count, rank, ranks);
    const float* slot = windows_[static_cast<std::size_t>(rank)]->slot(copied_out_);
    std::copy(slot + share.begin, slot + share.end, chunk.values + share.begin);
  }
  chunks_.pop_front();
  own().read.store(++copied_out_, std::memory_order_release);
}

}  // namespace batchwright::engine
