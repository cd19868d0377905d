#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace batchwright {
namespace {

// Known-answer vectors of Random123 (kat_vectors, philox4x32 10 rounds).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_EQ(philox({0, 0, 0, 0}, 0),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, 0xffffffffffffffffull),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(ShuffledIndices, IsAPermutationThatOnlyItsInputsDecide) {
  const auto first = shuffled_indices(1000, 7, RandomUse::EpochOrder, 3);
  EXPECT_EQ(first, shuffled_indices(1000, 7, RandomUse::EpochOrder, 3));
  EXPECT_NE(first, shuffled_indices(1000, 7, RandomUse::EpochOrder, 4));
  EXPECT_NE(first, shuffled_indices(1000, 7, RandomUse::HoldOut, 3));
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::uint32_t> expected(1000);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(sorted, expected);
}

TEST(RandomStream, HasTheMomentsOfItsDistributions) {
  RandomStream random(1, RandomUse::Test);
  double sum = 0, squares = 0, uniforms = 0;
  constexpr int kCount = 100000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    uniforms += random.uniform();
  }
  EXPECT_NEAR(sum / kCount, 0, 0.02);
  EXPECT_NEAR(squares / kCount, 1, 0.03);
  EXPECT_NEAR(uniforms / kCount, 0.5, 0.01);
}

}  // namespace
}  // namespace batchwright
