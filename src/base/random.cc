#include "base/random.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace batchwright {

std::uint32_t RandomStream::next() {
  if (used_ == 4) {
    words_ = philox({block_++, static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32),
                     static_cast<std::uint32_t>(use_)},
                    seed_);
    used_ = 0;
  }
  return words_[static_cast<std::size_t>(used_++)];
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  // Words under `rejected` would make the low remainders likelier (2^64 is no multiple of bound).
  const std::uint64_t rejected = (0 - bound) % bound;
  while (true) {
    const std::uint64_t high = next();
    const std::uint64_t word = high << 32 | next();
    if (word >= rejected) return word % bound;
  }
}

double RandomStream::uniform() {
  const std::uint64_t high = next();
  return static_cast<double>((high << 32 | next()) >> 11) * 0x1.0p-53;
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

std::vector<std::uint32_t> shuffled_indices(std::uint32_t count, std::uint64_t seed, RandomUse use,
                                            std::uint64_t stream) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  RandomStream random(seed, use, stream);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace batchwright
