// Published runs that none of the model's constants was fitted on when they were collected, against what plan
// says of them now. docs/benchmarks.md has the figures of the first run; these bounds keep what was learnt
// since.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "paths.h"
#include "plan/planner.h"

namespace batchwright::plan {
namespace {

struct Errors {
  std::vector<double> sizes;
  int inside = 0;

  void add(const Range& range, double measured) {
    sizes.push_back(std::abs(range.mid / measured - 1));
    inside += range.low <= measured && measured <= range.high ? 1 : 0;
  }
  double median() {
    std::sort(sizes.begin(), sizes.end());
    return sizes.empty() ? 1 : sizes[sizes.size() / 2];
  }
  double covered() const { return static_cast<double>(inside) / static_cast<double>(sizes.size()); }
};

TEST(PublishedRuns, ArePredictedAsWellAsTheFiguresSay) {
  std::ifstream file(source_folder() + "/tests/cases/plan/held_out.jsonl");
  Errors memory, time;
  std::string line;
  Planner planner;
  int rows = 0, ran_out = 0, refused = 0;
  while (std::getline(file, line)) {
    const Json row = parse_json(line, "held_out.jsonl");
    Json request = row["request"];
    const std::string model = request["model"].get<std::string>();
    if (model.ends_with(".json")) request["model"] = source_folder() + "/" + model;
    const SplitPlan split = planner.plan(parse_request(request, row["id"].get<std::string>())).splits.front();
    ++rows;
    const std::string counter = row.value("counter", "");
    if (row.contains("peak_gib") && !counter.empty() && counter != "unknown")
      memory.add(split.peak_bytes, row["peak_gib"].get<double>() * 1073741824.0);
    if (row.contains("step_seconds")) time.add(split.step_seconds, row["step_seconds"].get<double>());
    if (row.value("fits", "") == "no") {
      ++ran_out;
      EXPECT_NE(split.fits, Fits::Yes) << line;
    } else if (split.fits == Fits::No) {
      ++refused;
    }
  }
  EXPECT_GE(rows, 390);
  EXPECT_GE(ran_out, 8);
  EXPECT_EQ(refused, 0);
  ASSERT_FALSE(memory.sizes.empty() || time.sizes.empty());
  EXPECT_LT(memory.median(), 0.065);
  EXPECT_LT(time.median(), 0.12);
  EXPECT_GT(memory.covered(), 0.88);
  EXPECT_GT(time.covered(), 0.82);
}

}  // namespace
}  // namespace batchwright::plan
