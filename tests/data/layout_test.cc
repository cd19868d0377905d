#include "data/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace batchwright::data {
namespace {

using Members = std::vector<std::uint32_t>;
const std::vector<std::int32_t> kLengths = {5, 20, 3, 8, 20, 1};

TEST(Layout, NamesGoBothWays) {
  for (const Layout layout : {Layout::Arrival, Layout::Sorted, Layout::Packed}) {
    EXPECT_EQ(parse_layout(layout_name(layout)), layout);
  }
  try {
    parse_layout("pakced");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_NE(e.hint().find("packed"), std::string::npos);
  }
}

TEST(Layout, ArrivalPadsToTheLongestOfEachMicroBatch) {
  const auto batches = cut_window(kLengths, 4, Layout::Arrival);
  ASSERT_EQ(batches.size(), 2u);
  EXPECT_EQ(batches[0].members, (Members{0, 1, 2, 3}));
  EXPECT_EQ(batches[0].real_tokens, 36);
  EXPECT_EQ(batches[0].padded_tokens, 80);
  EXPECT_EQ(batches[1].members, (Members{4, 5}));
  EXPECT_EQ(batches[1].padded_tokens, 40);
}

TEST(Layout, SortedPadsLittle) {
  const auto batches = cut_window(kLengths, 2, Layout::Sorted);
  ASSERT_EQ(batches.size(), 3u);
  EXPECT_EQ(batches[0].members, (Members{1, 4}));
  EXPECT_EQ(batches[1].members, (Members{3, 0}));
  EXPECT_EQ(batches[2].members, (Members{2, 5}));
  EXPECT_EQ(batches[1].padded_tokens, 16);
}

TEST(Layout, PackedDealsTokensEvenlySoThatThePeakIsLow) {
  const std::vector<std::int32_t> lengths = {60, 50, 40, 30, 5, 5, 5, 5};
  for (const MicroBatch& batch : cut_window(lengths, 2, Layout::Packed)) EXPECT_LE(batch.real_tokens, 65);
  for (const MicroBatch& batch : cut_window(lengths, 4, Layout::Packed)) EXPECT_EQ(batch.real_tokens, 100);
}

TEST(Layout, PackedHasNoPadding) {
  for (const MicroBatch& batch : cut_window(kLengths, 4, Layout::Packed)) {
    EXPECT_EQ(batch.padded_tokens, batch.real_tokens);
  }
}

TEST(Layout, EveryCutHoldsEveryExampleOnceAndKeepsItsPromise) {
  RandomStream random(3, RandomUse::Test);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::int32_t> lengths(1 + random.below(70));
    for (auto& length : lengths) length = static_cast<std::int32_t>(1 + random.below(128));
    const auto micro = static_cast<std::int64_t>(1 + random.below(40));
    const auto micro_tokens = static_cast<std::int64_t>(1 + random.below(600));
    std::vector<std::vector<MicroBatch>> cuts;
    for (const Layout layout : {Layout::Arrival, Layout::Sorted, Layout::Packed}) {
      cuts.push_back(cut_window(lengths, micro, layout));
      const auto examples = static_cast<std::int64_t>(lengths.size());
      EXPECT_EQ(static_cast<std::int64_t>(cuts.back().size()), (examples + micro - 1) / micro);
      for (const auto& batch : cuts.back()) {
        EXPECT_LE(static_cast<std::int64_t>(batch.members.size()), micro);
        EXPECT_FALSE(batch.members.empty());
      }
    }
    cuts.push_back(cut_window_by_tokens(lengths, micro_tokens));
    for (const auto& batch : cuts.back()) {
      EXPECT_TRUE(batch.real_tokens <= micro_tokens || batch.members.size() == 1);
    }
    for (const auto& cut : cuts) {
      Members all;
      for (const auto& batch : cut) {
        all.insert(all.end(), batch.members.begin(), batch.members.end());
        EXPECT_GE(batch.padded_tokens, batch.real_tokens);
      }
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), lengths.size());
      for (std::uint32_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i);
    }
  }
}

TEST(Layout, TokenCutFillsEachMicroBatch) {
  const auto batches = cut_window_by_tokens(kLengths, 16);
  ASSERT_EQ(batches.size(), 4u);
  EXPECT_EQ(batches[0].members, (Members{1}));  // longer than the budget: alone
  EXPECT_EQ(batches[1].members, (Members{4}));
  EXPECT_EQ(batches[2].members, (Members{3, 0, 2}));
  EXPECT_EQ(batches[2].real_tokens, 16);
  EXPECT_EQ(batches[3].members, (Members{5}));
}

TEST(Layout, RefusesNonsense) {
  EXPECT_THROW(cut_window(kLengths, 0, Layout::Packed), Error);
  EXPECT_THROW(cut_window_by_tokens(kLengths, 0), Error);
  EXPECT_TRUE(cut_window({}, 4, Layout::Sorted).empty());
}

}  // namespace
}  // namespace batchwright::data
