#include "cli/print_decision.h"

#include <gtest/gtest.h>

#include <string>

namespace batchwright::cli {
namespace {

TuningResult recommending_8x4() {
  TuningResult result;
  tune::SplitResult best, slowest;
  best.split = {8, 4, 1};
  slowest.split = {1, 32, 1};
  best.outcome = slowest.outcome = run::Outcome::Measured;
  result.decision.trials = {best, slowest};
  result.decision.recommended = 0;
  result.decision.slowest = 1;
  result.decision.saving = Interval{0.25, 0.2, 0.3};
  result.decision.break_even_steps = 200;
  return result;
}

void expect_says(const TuningResult& result, const std::string& words) {
  EXPECT_NE(describe(result).find(words), std::string::npos) << words << " in\n" << describe(result);
}

TEST(DescribeTuning, SaysWhetherTheTrainingIsLongEnoughToPayItBack) {
  TuningResult result = recommending_8x4();
  expect_says(result, "pays back after 200 steps.");
  result.planned_steps = 368;
  expect_says(result, "pays back after 200 of the training's 368 steps.");
  result.planned_steps = 100;
  expect_says(result, "would pay back after 200 steps, more than the training's 100");
}

TEST(DescribeTuning, SaysUnderWhichLimitAnUnconfirmedPeakHeld) {
  TuningResult result = recommending_8x4();
  expect_says(result, "Its peak is that of the steps that ran");
  result.memory_limit_bytes = 1 << 30;
  expect_says(result, "The memory limit of 1.00 GiB held in the steps that ran");
  result.decision.confirmed_on_worst_batch = true;
  EXPECT_EQ(describe(result).find("that ran"), std::string::npos);
}

}  // namespace
}  // namespace batchwright::cli
