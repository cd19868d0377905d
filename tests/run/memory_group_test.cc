#include "run/memory_group.h"

#include <gtest/gtest.h>

#include <chrono>

#include "base/process.h"

namespace batchwright::run {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

// A shell that holds 40 MB of text.
ProcessOptions holding(const MemoryGroup& group) {
  ProcessOptions options;
  options.command =
      group.entered_by({"/bin/sh", "-c", "x=$(head -c 40000000 /dev/zero | tr '\\0' a); exit 3"});
  options.output_file = "/dev/null";
  return options;
}

TEST(MemoryGroup, CountsTheMostThatItHeld) {
  const auto group = MemoryGroup::create(500 * kMiB);
  if (group == nullptr) GTEST_SKIP() << "no control group may be made here";
  ChildProcess child = ChildProcess::start(holding(*group));
  const auto status = child.wait(std::chrono::seconds(60));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->code, 3);
  const auto peak = group->peak_bytes();
  ASSERT_TRUE(peak);
  EXPECT_GT(*peak, 38 * kMiB);
  EXPECT_LE(*peak, 500 * kMiB);
  EXPECT_EQ(group->oom_kills(), 0);
}

TEST(MemoryGroup, EndsWhatNeedsMore) {
  const auto group = MemoryGroup::create(20 * kMiB);
  if (group == nullptr) GTEST_SKIP() << "no control group may be made here";
  ChildProcess child = ChildProcess::start(holding(*group));
  const auto status = child.wait(std::chrono::seconds(60));
  ASSERT_TRUE(status);
  EXPECT_NE(status->code, 3);
  EXPECT_GE(group->oom_kills().value_or(0), 1);
  EXPECT_LE(group->peak_bytes().value_or(0), 20 * kMiB);
}

}  // namespace
}  // namespace batchwright::run
