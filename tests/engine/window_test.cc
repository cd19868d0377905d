#include "engine/window.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/small_model.h"

namespace batchwright::engine::test {
namespace {

std::vector<std::int64_t> rows_of_threads(const WindowPlan& plan) {
  std::vector<std::int64_t> rows;
  for (const auto& shards : plan.shards) {
    rows.push_back(0);
    for (const Shard& shard : shards) rows.back() += shard.tokens.rows();
  }
  return rows;
}

TEST(PlanWindow, KeepsTheThreadsEvenlyBusyWhateverTheCut) {
  const SmallModel small;
  const data::TokenFile tokens = small.tokens();
  const std::vector<std::uint32_t> rows = small.rows();
  std::int64_t longest = 0;
  for (const std::uint32_t row : rows) longest = std::max<std::int64_t>(longest, tokens.length(row));
  for (const std::int64_t micro_batch : {1, 2, 3, 4, 8, 24}) {
    for (const int threads : {2, 3}) {
      const WindowPlan plan =
          plan_window(tokens, rows, {.micro_batch = micro_batch}, threads, WantedRows::First, -1);
      const auto busy = rows_of_threads(plan);
      const auto [least, most] = std::minmax_element(busy.begin(), busy.end());
      EXPECT_LE(*most - *least, longest) << micro_batch << " examples on " << threads << " threads";
    }
  }
}

}  // namespace
}  // namespace batchwright::engine::test
