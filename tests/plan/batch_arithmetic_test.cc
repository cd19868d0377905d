#include "plan/batch_arithmetic.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>

#include "base/error.h"

namespace batchwright::plan {
namespace {

// The lesson "Batch size and gradient accumulation": its worked examples, exercise and mini challenge.
TEST(Lesson, Example1FineTuningBertOnOneDevice) { EXPECT_EQ(rounded_up_split(64, 8).accumulation_steps, 8); }

TEST(Lesson, Example2TwoDevicesWithDataParallel) {
  const Split split = rounded_up_split(128, 4, 2);
  EXPECT_EQ(split.accumulation_steps, 16);
  EXPECT_EQ(split.micro_batch * split.accumulation_steps, 64);  // examples a device and optimizer step
  EXPECT_EQ(split.effective_batch(), 128);
}

TEST(Lesson, Example3LongerSequencesForceASmallerMicroBatch) {
  EXPECT_EQ(rounded_up_split(128, 16).accumulation_steps, 8);
  EXPECT_EQ(rounded_up_split(128, 4).accumulation_steps, 32);
}

TEST(Lesson, Exercise1AccumulationStepsAndLearningRate) {
  EXPECT_EQ(rounded_up_split(128, 8).accumulation_steps, 16);
  const LearningRateAdvice advice = scale_learning_rate(2e-5, 32, 128);
  EXPECT_DOUBLE_EQ(advice.chosen(), 8e-5);
  EXPECT_DOUBLE_EQ(advice.sqrt, 4e-5);
}

TEST(Lesson, MiniChallengeMicro8Accumulation4Is32Not64) {
  const Split today{8, 4, 1};
  EXPECT_EQ(today.effective_batch(), 32);
  const BatchCheck check = check_batch(64, today);
  EXPECT_FALSE(check.exact());
  EXPECT_DOUBLE_EQ(check.excess, -0.5);
  EXPECT_EQ(rounded_up_split(64, 4).accumulation_steps, 16);  // what keeps 64 when micro 8 no longer fits
}

TEST(Warmup, CountsOptimizerStepsNotMicroSteps) {
  const Warmup warmup = warmup_of(500, {8, 8, 1});
  EXPECT_EQ(warmup.optimizer_steps, 500);
  EXPECT_EQ(warmup.micro_steps, 4000);
}

TEST(ExactSplits, IsEveryDivisorOnceLargestMicroBatchFirst) {
  for (const std::int64_t devices : {1, 2, 3}) {
    for (std::int64_t batch = 1; batch <= 200; ++batch) {
      const std::vector<Split> splits = exact_splits(batch, devices);
      std::set<std::int64_t> micros;
      for (const Split& split : splits) {
        EXPECT_EQ(split.effective_batch(), batch);
        EXPECT_TRUE(micros.empty() || split.micro_batch < *micros.begin());
        micros.insert(split.micro_batch);
      }
      for (std::int64_t micro = 1; micro <= batch; ++micro) {
        EXPECT_EQ(micros.count(micro) > 0, batch % (micro * devices) == 0)
            << batch << " " << micro << " " << devices;
      }
    }
  }
  EXPECT_TRUE(exact_splits(7, 2).empty());
}

TEST(RoundedUp, SaysRequestedRealExcessAndTheNearestExactChoices) {
  const Split split = rounded_up_split(100, 8);
  EXPECT_EQ(split.accumulation_steps, 13);
  const BatchCheck check = check_batch(100, split);
  EXPECT_EQ(check.real, 104);
  EXPECT_DOUBLE_EQ(check.excess, 0.04);
  EXPECT_EQ(check.nearest_exact, (std::vector<Split>{{10, 10, 1}, {5, 20, 1}}));
  EXPECT_EQ(check.nearest_effective_batches, (std::vector<std::int64_t>{96, 104}));
  EXPECT_EQ(check.warning(),
            "requested 100, real 104, +4 %; exact: 10x10, 5x20 (or an effective batch of 96 or 104)");
  EXPECT_EQ(check_batch(96, {8, 12, 1}).warning(), "");
}

TEST(RoundedUp, IsNeverLessThanRequestedNorAWholePassMore) {
  for (std::int64_t batch = 1; batch <= 130; ++batch) {
    for (std::int64_t micro = 1; micro * 2 <= batch; ++micro) {
      const Split split = rounded_up_split(batch, micro, 2);
      EXPECT_GE(split.effective_batch(), batch);
      EXPECT_LT(split.effective_batch(), batch + micro * 2);
    }
  }
}

TEST(BatchArithmetic, RefusesWhatIsNotABatch) {
  EXPECT_THROW(exact_splits(0), Error);
  EXPECT_THROW(exact_splits(-4), Error);
  EXPECT_THROW(exact_splits(std::numeric_limits<std::int64_t>::max()), Error);
  EXPECT_THROW(rounded_up_split(32, 33), Error);
  EXPECT_THROW(rounded_up_split(32, 0), Error);
  EXPECT_THROW(rounded_up_split(32, 32, 2), Error);
  EXPECT_THROW(rounded_up_split(1, 1, 2), Error);
  EXPECT_THROW(scale_learning_rate(0, 32, 64), Error);
  EXPECT_THROW(scale_learning_rate(1e-4, 32, 64, "cubic"), Error);
  EXPECT_THROW(warmup_of(-1, {1, 1, 1}), Error);
}

TEST(ToString, NamesDevicesOnlyWhenThereAreSeveral) {
  EXPECT_EQ(to_string(Split{8, 4, 1}), "8x4");
  EXPECT_EQ(to_string(Split{8, 4, 2}), "8x4x2");
}

}  // namespace
}  // namespace batchwright::plan
