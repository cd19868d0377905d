#include "data/length_statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace batchwright::data {
namespace {

TEST(LengthStatistics, OfOneToAHundred) {
  std::vector<std::int32_t> lengths(100);
  std::iota(lengths.rbegin(), lengths.rend(), 1);
  const LengthStatistics s = length_statistics(lengths);
  EXPECT_EQ(s.rows, 100);
  EXPECT_EQ(s.tokens, 5050);
  EXPECT_DOUBLE_EQ(s.mean, 50.5);
  EXPECT_EQ(s.shortest, 1);
  EXPECT_EQ(s.median, 50);
  EXPECT_EQ(s.p90, 90);
  EXPECT_EQ(s.p95, 95);
  EXPECT_EQ(s.p99, 99);
  EXPECT_EQ(s.longest, 100);
  EXPECT_EQ(s.histogram.size(), 25u);  // 32 bins at most, so a width of 4
  EXPECT_EQ(s.histogram[0].low, 1);
  EXPECT_EQ(s.histogram[0].high, 4);
  for (const auto& bin : s.histogram) EXPECT_EQ(bin.rows, 4);
}

TEST(LengthStatistics, SmallCases) {
  EXPECT_EQ(length_statistics({}).rows, 0);
  const std::vector<std::int32_t> one = {7};
  const LengthStatistics s = length_statistics(one);
  EXPECT_EQ(s.median, 7);
  EXPECT_EQ(s.p99, 7);
  EXPECT_EQ(s.histogram.back().rows, 1);
  EXPECT_EQ(s.histogram.back().high, 7);
  const std::vector<std::int32_t> huge = {1, 1 << 30};
  EXPECT_LE(length_statistics(huge).histogram.size(), 32u);
  EXPECT_EQ(to_json(s)["histogram"].size(), 7u);
}

}  // namespace
}  // namespace batchwright::data
