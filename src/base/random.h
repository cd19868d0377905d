#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace batchwright {

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011): four
// 32-bit words that are a pure function of a 128-bit counter and a 64-bit key. Same inputs, same words, on
// every machine.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  std::uint32_t key0 = static_cast<std::uint32_t>(key), key1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = 0xD2511F53ull * counter[0];
    const std::uint64_t product1 = 0xCD9E8D57ull * counter[2];
    counter = {
        static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

// What a stream of random words is for: part of the counter, so that streams never share words.
enum class RandomUse : std::uint32_t {
  HoldOut = 1,
  EpochOrder = 2,
  Initialisation = 3,
  Bootstrap = 4,
  Test = 5
};

// A stream of words addressed by (seed, use, stream); used where a sequence is wanted.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, RandomUse use, std::uint64_t stream = 0)
      : seed_(seed), use_(use), stream_(stream) {}

  std::uint32_t next();
  std::uint64_t below(std::uint64_t bound);  // uniform in [0, bound), unbiased; bound > 0
  double uniform();                          // [0, 1), 53 bits
  double normal();                           // mean 0, variance 1

 private:
  std::uint64_t seed_;
  RandomUse use_;
  std::uint64_t stream_;
  std::uint32_t block_ = 0;
  int used_ = 4;
  std::array<std::uint32_t, 4> words_{};
};

// 0..count-1 in an order that depends on (seed, use, stream) only (Fisher-Yates).
std::vector<std::uint32_t> shuffled_indices(std::uint32_t count, std::uint64_t seed, RandomUse use,
                                            std::uint64_t stream = 0);

}  // namespace batchwright
