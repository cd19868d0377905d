#include "engine/loss_scaler.h"

#include <gtest/gtest.h>

#include "engine/precision.h"

namespace batchwright::engine {
namespace {

TEST(LossScaler, HalvesOnOverflowAndDoublesAfterEnoughGoodSteps) {
  LossScaler scaler(1024, 3);
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 512);
  for (const double expected : {512.0, 512.0, 1024.0, 1024.0, 1024.0, 2048.0}) {
    scaler.update(false);
    EXPECT_EQ(scaler.scale(), expected);
  }
  scaler.update(false);
  scaler.update(true);  // an overflow starts the count afresh
  scaler.update(false);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 1024);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 2048);
}

TEST(LossScaler, NeverGrowsPastFloat32) {
  LossScaler scaler(0x1p127, 1);
  scaler.update(false);
  EXPECT_EQ(scaler.scale(), 0x1p127);
}

TEST(LossScaler, WithoutScalingItStaysAtOne) {
  LossScaler scaler;
  scaler.update(true);
  EXPECT_EQ(scaler.scale(), 1);
}

TEST(RoundTo, RoundsToNearestEvenAndOverflowsToInfinity) {
  // 1 + 2^-8 lies halfway between two bfloat16 numbers, 1 + 2^-11 between two float16 numbers.
  const float x[] = {1 + 0x1p-8f, 1 + 0x1p-7f + 0x1p-8f, 65519.0f, 65520.0f, -1e9f, 0x1p-25f};
  float bf16[6], fp16[6];
  round_to(Number::BFloat16, x, 6, bf16);
  round_to(Number::Float16, x, 6, fp16);
  EXPECT_EQ(bf16[0], 1.0f);
  EXPECT_EQ(bf16[1], 1 + 0x1p-6f);
  EXPECT_EQ(fp16[2], 65504.0f);
  EXPECT_EQ(fp16[3], INFINITY);
  EXPECT_EQ(fp16[4], -INFINITY);
  EXPECT_EQ(fp16[5], 0.0f);
}

}  // namespace
}  // namespace batchwright::engine
