#include "engine/memory.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/small_model.h"

namespace batchwright::engine::test {
namespace {

// The limit belongs to the process, so every test sets it and takes it away.
class MemoryLimit : public ::testing::Test {
 protected:
  void TearDown() override { install_memory_counter(0); }
};

TEST_F(MemoryLimit, CountsAndRefusesExactly) {
  install_memory_counter(0);
  const std::int64_t before = memory_counts().live_bytes;
  install_memory_counter(before + 4096);
  {
    const Buffer fits(4096);
    EXPECT_EQ(memory_counts().live_bytes, before + 4096);
    EXPECT_THROW(Buffer(1), Error);
  }
  EXPECT_EQ(memory_counts().live_bytes, before);
  EXPECT_NO_THROW(Buffer(4096));
  EXPECT_THROW(Buffer(4097), Error);
}

TEST_F(MemoryLimit, OutOfMemoryEndsAStepBeforeItBeginsAndTheNextSmallerOneRuns) {
  install_memory_counter(0);
  const SmallModel small;
  const auto options = small.options(run::Method::Lora);
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  Stepper stepper(*model, tokens, options);
  reset_peak_bytes();
  stepper.step(small.rows(), {.micro_batch = 4}, 0, 1e-3);
  const std::int64_t enough = memory_counts().peak_bytes;
  stepper.release_activations();
  install_memory_counter(enough);
  const std::vector<float> weights(
      model->parameters.trainable_values(),
      model->parameters.trainable_values() + model->parameters.trainable_count());
  try {
    stepper.step(small.rows(), {.micro_batch = 24}, 1, 1e-3);
    ADD_FAILURE() << "24 examples fit where 4 just do";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::OutOfMemory);
    EXPECT_NE(std::string(e.what()).find("the limit is"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(std::equal(weights.begin(), weights.end(), model->parameters.trainable_values()));
  stepper.release_activations();
  EXPECT_NO_THROW(stepper.step(small.rows(), {.micro_batch = 4}, 1, 1e-3));
}

TEST_F(MemoryLimit, TheSteadyStateAllocatesNothing) {
  install_memory_counter(0);
  const SmallModel small;
  const auto options = small.options(run::Method::Full);
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  Stepper stepper(*model, tokens, options);
  stepper.step(small.rows(), {.micro_batch = 6}, 0, 1e-3);
  const std::int64_t calls = memory_counts().system_allocations;
  for (int step = 1; step < 4; ++step) stepper.step(small.rows(), {.micro_batch = 6}, step, 1e-3);
  EXPECT_EQ(memory_counts().system_allocations, calls);
}

TEST_F(MemoryLimit, ThePeakGrowsWithTheMicroBatchAndWithPaddingAndFallsWithCheckpointing) {
  install_memory_counter(0);
  for (const char* family : {"bert", "gpt2", "qwen3"}) {
    SCOPED_TRACE(family);
    const SmallModel small(family);
    const auto options = small.options(run::Method::Lora);
    const auto tokens = small.tokens();
    const auto model = small.load(options);
    Stepper stepper(*model, tokens, options);
    const auto peak = [&](std::int64_t micro, data::Layout layout) {
      stepper.release_activations();
      reset_peak_bytes();
      stepper.accumulate(small.rows(), {.micro_batch = micro, .layout = layout}, 0);
      return memory_counts().peak_bytes;
    };
    const auto checkpointed = [&](Checkpointing checkpointing) {
      stepper.release_activations();
      reset_peak_bytes();
      stepper.accumulate(small.rows(), {.micro_batch = 24, .checkpointing = checkpointing}, 0);
      return memory_counts().peak_bytes;
    };
    EXPECT_LT(checkpointed(Checkpointing::Selective), checkpointed(Checkpointing::None));
    EXPECT_LT(checkpointed(Checkpointing::Full), checkpointed(Checkpointing::Selective));
    EXPECT_LT(peak(2, data::Layout::Packed), peak(8, data::Layout::Packed));
    EXPECT_LT(peak(8, data::Layout::Packed), peak(24, data::Layout::Packed));
    EXPECT_LT(peak(24, data::Layout::Packed), peak(24, data::Layout::Arrival));
  }
}

}  // namespace
}  // namespace batchwright::engine::test
