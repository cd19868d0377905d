#pragma once

#include <cstddef>
#include <cstdint>

namespace batchwright::engine {

// The engine's CPU memory: every buffer and tensor comes from one c10 allocator that counts, so live and peak
// bytes are exact, and a limit makes out-of-memory real and repeatable on a machine with memory to spare.
struct MemoryCounts {
  std::int64_t live_bytes = 0;
  std::int64_t peak_bytes = 0;
  std::int64_t system_allocations = 0;  // calls to the system's allocator since the process started
};

// Installs the counting allocator for all CPU tensors of this process. limit_bytes 0: no limit. Call first
// thing. An allocation past the limit throws c10::OutOfMemoryError; the process can go on.
void install_memory_counter(std::int64_t limit_bytes);
MemoryCounts memory_counts();
void reset_peak_bytes();  // the peak becomes what is live now

enum class DeviceKind { Cpu, Cuda };

// A block of device memory, zeroed on request, freed on destruction. CPU: 64-byte aligned, from the counting
// allocator. CUDA: from torch's own allocator, counted here as well.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::int64_t bytes, bool zeroed = false,
                  DeviceKind device = DeviceKind::Cpu);  // throws Error(OutOfMemory)
  ~Buffer() { release(); }
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  float* floats() const { return reinterpret_cast<float*>(data_); }
  std::int64_t bytes() const { return bytes_; }
  void release();

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  DeviceKind device_ = DeviceKind::Cpu;
};

// A bump allocator over one Buffer: the activations of one micro-batch. Between steps nothing is freed or
// allocated. In counting mode (no memory behind it) it hands out addresses that nobody may touch, to learn
// how much is needed.
class Arena {
 public:
  explicit Arena(DeviceKind device = DeviceKind::Cpu) : device_(device) {}
  float* floats(std::int64_t count) { return reinterpret_cast<float*>(take(count * 4)); }
  std::uint32_t* words(std::int64_t count) { return reinterpret_cast<std::uint32_t*>(take(count * 4)); }

  // Memory taken after mark() is free again after release_to().
  std::int64_t mark() const { return used_; }
  void release_to(std::int64_t mark) { used_ = mark; }

  void start_counting();  // forget the pointers, count from zero
  std::int64_t counted_bytes() const { return peak_used_; }
  void reserve(std::int64_t bytes);  // make room (grows only); throws Error(OutOfMemory)
  void give_back() { buffer_.release(); }
  std::int64_t capacity_bytes() const { return buffer_.bytes(); }

 private:
  std::byte* take(std::int64_t bytes);

  DeviceKind device_;
  Buffer buffer_;
  std::int64_t used_ = 0, peak_used_ = 0;
  bool counting_ = false;
};

// Frees what was taken from the arena in a scope.
class ArenaScope {
 public:
  explicit ArenaScope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  ~ArenaScope() { arena_.release_to(mark_); }
  ArenaScope(const ArenaScope&) = delete;

 private:
  Arena& arena_;
  std::int64_t mark_;
};

}  // namespace batchwright::engine
