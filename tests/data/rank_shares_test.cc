#include "data/rank_shares.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace batchwright::data {
namespace {

std::vector<std::int32_t> random_lengths(std::size_t count, std::uint64_t stream) {
  RandomStream random(1, RandomUse::Test, stream);
  std::vector<std::int32_t> lengths(count);
  for (auto& length : lengths)
    length = static_cast<std::int32_t>(1 + random.below(random.below(8) == 0 ? 500 : 40));
  return lengths;
}

TEST(RankShares, EveryExampleOnceAndNoRankHasMoreThanItsRoom) {
  for (std::size_t examples : {0u, 1u, 3u, 5u, 7u, 32u, 33u, 64u}) {
    for (int ranks : {1, 2, 3, 4, 8}) {
      const auto shares = rank_shares(random_lengths(examples, examples), ranks);
      ASSERT_EQ(shares.size(), static_cast<std::size_t>(ranks));
      std::vector<std::uint32_t> seen;
      for (const auto& share : shares) {
        EXPECT_LE(share.size(),
                  (examples + static_cast<std::size_t>(ranks) - 1) / static_cast<std::size_t>(ranks));
        EXPECT_TRUE(std::is_sorted(share.begin(), share.end()));
        seen.insert(seen.end(), share.begin(), share.end());
      }
      std::sort(seen.begin(), seen.end());
      for (std::uint32_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i);
      EXPECT_EQ(seen.size(), examples);
    }
  }
}

TEST(RankShares, AFullWindowGivesEqualCountsAndNearlyEqualTokens) {
  for (std::uint64_t stream = 0; stream < 50; ++stream) {
    const auto lengths = random_lengths(64, stream);
    const auto shares = rank_shares(lengths, 4);
    std::vector<std::int64_t> tokens;
    for (const auto& share : shares) {
      EXPECT_EQ(share.size(), 16u);
      std::int64_t sum = 0;
      for (const auto example : share) sum += lengths[example];
      tokens.push_back(sum);
    }
    const auto [least, most] = std::minmax_element(tokens.begin(), tokens.end());
    const auto longest = *std::max_element(lengths.begin(), lengths.end());
    EXPECT_LE(*most - *least, longest) << "stream " << stream;
  }
}

}  // namespace
}  // namespace batchwright::data
