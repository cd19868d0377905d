#include "data/sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/error.h"
#include "data/token_bytes.h"

namespace batchwright::data {
namespace {

std::vector<std::uint32_t> first_rows(std::uint32_t count) {
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

TEST(HoldOut, EveryRowIsOnExactlyOneSide) {
  const HoldOut sides = split_rows(1003, 0.1, 7);
  EXPECT_EQ(sides.held_out.size(), 100u);
  EXPECT_EQ(sides.train.size(), 903u);
  std::vector<std::uint32_t> all = sides.train;
  all.insert(all.end(), sides.held_out.begin(), sides.held_out.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, first_rows(1003));
}

// A file sorted by label must not give a held-out share of one label.
TEST(HoldOut, IsDrawnFromTheWholeFile) {
  const HoldOut sides = split_rows(10000, 0.1, 0);
  const auto late =
      std::count_if(sides.held_out.begin(), sides.held_out.end(), [](auto r) { return r >= 5000; });
  EXPECT_NEAR(static_cast<double>(late), 500, 75);  // 5 standard deviations of a fair draw are 75
}

TEST(HoldOut, DependsOnTheSeedAlone) {
  EXPECT_EQ(split_rows(50, 0.2, 3).held_out, split_rows(50, 0.2, 3).held_out);
  EXPECT_NE(split_rows(50, 0.2, 3).held_out, split_rows(50, 0.2, 4).held_out);
}

TEST(HoldOut, RefusesAnEmptySide) {
  EXPECT_THROW(split_rows(3, 0.1, 0), Error);  // nothing to evaluate on
  EXPECT_THROW(split_rows(1, 0.9, 0), Error);  // nothing to train on
  EXPECT_THROW(split_rows(10, 1.0, 0), Error);
  EXPECT_THROW(split_rows(10, -0.1, 0), Error);
  EXPECT_THROW(split_rows(10, std::numeric_limits<double>::quiet_NaN(), 0), Error);
  EXPECT_EQ(split_rows(3, 0, 0).train.size(), 3u);
}

TEST(Sampler, AnEpochVisitsEveryRowOnceAndEndsWithAShortWindow) {
  Sampler sampler(first_rows(10), 4, 1);
  ASSERT_EQ(sampler.steps_per_epoch(), 3);
  std::vector<std::uint32_t> seen;
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto window = sampler.window(step);
    EXPECT_EQ(window.size(), step == 2 ? 2u : 4u);
    seen.insert(seen.end(), window.begin(), window.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, first_rows(10));
}

TEST(Sampler, AWindowIsAFunctionOfSeedAndStep) {
  Sampler forward(first_rows(100), 8, 5), jumping(first_rows(100), 8, 5);
  std::vector<std::vector<std::uint32_t>> windows;
  for (std::int64_t step = 0; step < 40; ++step) windows.push_back(forward.window(step));
  for (const std::int64_t step : {39, 0, 13, 26, 12, 1}) {
    EXPECT_EQ(jumping.window(step), windows[static_cast<std::size_t>(step)]) << step;
  }
  EXPECT_NE(windows[0], windows[13]);  // the next epoch's order is another one
  EXPECT_NE(Sampler(first_rows(100), 8, 6).window(0), windows[0]);
}

TEST(Sampler, GivesTheRowsItWasGiven) {
  Sampler sampler({40, 41, 42}, 8, 0);
  auto window = sampler.window(2);
  std::sort(window.begin(), window.end());
  EXPECT_EQ(window, (std::vector<std::uint32_t>{40, 41, 42}));
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_THROW(Sampler({1, 2}, 0, 0), Error);
  EXPECT_THROW(Sampler({}, 4, 0), Error);
  EXPECT_THROW(Sampler({1}, 4, 0).window(-1), Error);
}

TokenFile rows_of_lengths(const std::vector<std::size_t>& lengths) {
  const auto path =
      std::filesystem::temp_directory_path() / ("batchwright_lengths_" + std::to_string(::getpid()) + ".bin");
  test::TokenRows rows{.ids = {}, .labels = std::vector<std::int32_t>(lengths.size(), 0)};
  for (const std::size_t length : lengths) rows.ids.emplace_back(length, 1);
  write_file_atomic(path, rows.bytes());
  TokenFile file = TokenFile::open(path);
  std::filesystem::remove(path);
  return file;
}

TEST(LongestRows, LongestFirstTiesByRow) {
  const TokenFile file = rows_of_lengths({2, 3, 1, 3, 2});
  const auto rows = first_rows(5);
  EXPECT_EQ(longest_rows(file, rows, 3), (std::vector<std::uint32_t>{1, 3, 0}));
  EXPECT_EQ(longest_rows(file, std::vector<std::uint32_t>{4, 2, 0}, 2), (std::vector<std::uint32_t>{0, 4}));
  EXPECT_EQ(longest_rows(file, rows, 99).size(), 5u);
}

TEST(FullestMicroBatches, FillTheBudgetBehindEveryRowThatMayBeTheLongest) {
  const TokenFile file = rows_of_lengths({2, 9, 5, 9, 6, 5});
  const auto rows = first_rows(6);
  // 9 + 9 leaves two of 20, which the row of two fills; no other holds more tokens, but 6 + 5 + 5 + 2 more
  // rows.
  EXPECT_EQ(fullest_micro_batches(file, rows, 20, 99),
            (std::vector<std::vector<std::uint32_t>>{{1, 3, 0}, {4, 2, 5, 0}}));
  // One of 9 leaves 2 of 11; 6 + 5 fills it, with fewer tokens a row.
  EXPECT_EQ(fullest_micro_batches(file, rows, 11, 99), (std::vector<std::vector<std::uint32_t>>{{1, 0}}));
  EXPECT_EQ(fullest_micro_batches(file, std::vector<std::uint32_t>{1, 2, 4}, 11, 99),
            (std::vector<std::vector<std::uint32_t>>{{1}, {4, 2}}));
  EXPECT_EQ(fullest_micro_batches(file, rows, 20, 1), (std::vector<std::vector<std::uint32_t>>{{1}}));
  // A row that exceeds the budget is a micro-batch of its own.
  EXPECT_EQ(fullest_micro_batches(file, rows, 7, 99), (std::vector<std::vector<std::uint32_t>>{{1}, {2, 0}}));
}

}  // namespace
}  // namespace batchwright::data
