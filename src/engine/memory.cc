#include "engine/memory.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zero.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace batchwright::engine {
namespace {

constexpr std::size_t kAlignment = 64;  // a cache line and an AVX-512 register; also holds the size in front

class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = take(bytes);
    return {data, data, &CountingAllocator::free_block, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &CountingAllocator::free_block; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    std::memcpy(to, from, count);
  }

  static void count(std::int64_t size);  // throws c10::OutOfMemoryError past the limit
  static void* take(std::size_t bytes);
  static void free_block(void* data);

  static inline std::atomic<std::int64_t> limit{0}, live{0}, peak{0}, calls{0};
};

void CountingAllocator::count(std::int64_t size) {
  const std::int64_t now = live.fetch_add(size) + size;
  const std::int64_t allowed = limit.load();
  if (allowed > 0 && now > allowed) {
    live.fetch_sub(size);
    TORCH_CHECK_WITH(OutOfMemoryError, false,
                     fmt::format("{} needed, {} of it for one array; the limit is {}", format_bytes(now),
                                 format_bytes(size), format_bytes(allowed)));
  }
  calls.fetch_add(1);
  for (std::int64_t seen = peak.load(); now > seen && !peak.compare_exchange_weak(seen, now);) {
  }
}

void* CountingAllocator::take(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  count(static_cast<std::int64_t>(padded));
  void* block = nullptr;
  if (::posix_memalign(&block, kAlignment, padded + kAlignment) != 0) {
    live.fetch_sub(static_cast<std::int64_t>(padded));
    TORCH_CHECK_WITH(
        OutOfMemoryError, false,
        fmt::format("the machine has no {} to give", format_bytes(static_cast<std::int64_t>(padded))));
  }
  *static_cast<std::size_t*>(block) = padded;
  return static_cast<std::byte*>(block) + kAlignment;
}

void CountingAllocator::free_block(void* data) {
  if (data == nullptr) return;
  void* block = static_cast<std::byte*>(data) - kAlignment;
  live.fetch_sub(static_cast<std::int64_t>(*static_cast<std::size_t*>(block)));
  std::free(block);
}

}  // namespace

void install_memory_counter(std::int64_t limit_bytes) {
  static CountingAllocator allocator;
  CountingAllocator::limit = limit_bytes;
  // Above the priority of torch's own allocators, which register with 0.
  c10::SetCPUAllocator(&allocator, 100);
}

MemoryCounts memory_counts() {
  return {CountingAllocator::live.load(), CountingAllocator::peak.load(), CountingAllocator::calls.load()};
}

void reset_peak_bytes() { CountingAllocator::peak = CountingAllocator::live.load(); }

namespace {

c10::Allocator& cuda_allocator() { return *c10::GetAllocator(c10::DeviceType::CUDA); }

}  // namespace

Buffer::Buffer(std::int64_t bytes, bool zeroed, DeviceKind device) : bytes_(bytes), device_(device) {
  if (bytes == 0) return;
  try {
    if (device == DeviceKind::Cpu) {
      data_ = static_cast<std::byte*>(CountingAllocator::take(static_cast<std::size_t>(bytes)));
    } else {
      CountingAllocator::count(bytes);
      try {
        data_ = static_cast<std::byte*>(cuda_allocator().raw_allocate(static_cast<std::size_t>(bytes)));
      } catch (...) {
        CountingAllocator::live.fetch_sub(bytes);
        throw;
      }
    }
  } catch (const c10::OutOfMemoryError& e) {
    throw Error(ErrorKind::OutOfMemory, "memory limit", e.what_without_backtrace());
  }
  if (!zeroed) return;
  if (device == DeviceKind::Cpu)
    std::memset(data_, 0, static_cast<std::size_t>(bytes));
  else
    at::from_blob(data_, {bytes}, at::TensorOptions(at::kByte).device(at::kCUDA)).zero_();
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      device_(other.device_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

void Buffer::release() {
  if (device_ == DeviceKind::Cpu) {
    CountingAllocator::free_block(data_);
  } else if (data_ != nullptr) {
    cuda_allocator().raw_deallocate(data_);
    CountingAllocator::live.fetch_sub(bytes_);
  }
  data_ = nullptr;
  bytes_ = 0;
}

std::byte* Arena::take(std::int64_t bytes) {
  const std::int64_t start = used_;
  const auto alignment = static_cast<std::int64_t>(kAlignment);
  used_ = (used_ + bytes + alignment - 1) / alignment * alignment;
  if (used_ > peak_used_) peak_used_ = used_;
  // Not null, so that "no mask" and "a mask somewhere" stay apart; nobody touches it.
  if (counting_) return reinterpret_cast<std::byte*>(kAlignment) + start;
  if (used_ > buffer_.bytes()) {
    throw Error(ErrorKind::Internal, "activation arena",
                fmt::format("{} bytes are needed and {} were counted", used_, buffer_.bytes()));
  }
  return buffer_.data() + start;
}

void Arena::start_counting() {
  counting_ = true;
  used_ = peak_used_ = 0;
}

void Arena::reserve(std::int64_t bytes) {
  counting_ = false;
  used_ = 0;
  if (bytes <= buffer_.bytes()) return;
  buffer_.release();  // first, so that growing never needs the old and the new block at once
  buffer_ = Buffer(bytes, false, device_);
}

}  // namespace batchwright::engine
