#include "engine/memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "data/sampler.h"
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

// A trial sees a few windows; its peak is that of a training that sees all of them.
TEST_F(MemoryLimit, NoWindowNeedsMoreThanTheHeaviestRows) {
  install_memory_counter(0);
  for (const char* family : {"bert", "qwen3"}) {
    const SmallModel small(family);
    auto options = small.options(run::Method::Lora);
    options.threads = 3;  // so that a micro-batch of four is dealt unevenly, and to other threads every time
    const auto tokens = small.tokens();
    const auto model = small.load(options);
    Stepper stepper(*model, tokens, options);
    const auto rows = small.rows();
    std::vector<Cut> cuts;
    for (const std::int64_t micro : {1, 2, 4, 6}) {
      cuts.push_back({.micro_batch = micro});
      cuts.push_back({.micro_batch = micro, .layout = data::Layout::Arrival});
    }
    for (const std::int64_t budget : {64, 100, 150}) cuts.push_back({.micro_tokens = budget});
    for (const Cut& cut : cuts) {
      SCOPED_TRACE(
          fmt::format("{}, micro-batch {}, micro-tokens {}", family, cut.micro_batch, cut.micro_tokens));
      constexpr std::int64_t kWindow = 12;
      stepper.release_activations();
      reset_peak_bytes();
      for (int step = 0; step < 40; ++step) {
        RandomStream random(7, RandomUse::Test, static_cast<std::uint64_t>(step));
        auto window = rows;
        for (std::size_t i = window.size() - 1; i > 0; --i) std::swap(window[i], window[random.below(i + 1)]);
        window.resize(kWindow);
        stepper.accumulate(window, cut, step);
      }
      const std::int64_t met = memory_counts().peak_bytes;
      stepper.release_activations();
      reset_peak_bytes();
      const std::int64_t bare = memory_counts().peak_bytes;
      const auto heaviest = heaviest_rows(tokens, rows, cut, std::vector<std::int64_t>{kWindow}, 3);
      for (const auto& batch : heaviest) stepper.reserve_for(batch, cut);
      const std::int64_t promised = memory_counts().peak_bytes;
      EXPECT_LE(met, promised);
      EXPECT_GT(static_cast<double>(met - bare), 0.7 * static_cast<double>(promised - bare));
    }
  }
}

// What an epoch leaves for its last window may be too few examples for all threads, and then one runs them
// all.
TEST_F(MemoryLimit, TheLastWindowOfAnEpochNeedsNoMoreThanTheHeaviestRows) {
  install_memory_counter(0);
  const SmallModel small;
  auto options = small.options(run::Method::Lora);
  options.threads = 3;
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  Stepper stepper(*model, tokens, options);
  const auto longest = data::longest_rows(tokens, small.rows(), 6);
  for (const data::Layout layout : {data::Layout::Packed, data::Layout::Arrival, data::Layout::Sorted}) {
    const Cut cut{.micro_batch = 3, .layout = layout};
    stepper.release_activations();
    reset_peak_bytes();
    stepper.accumulate(longest, cut, 0);
    const std::int64_t of_whole_windows = memory_counts().peak_bytes;
    stepper.accumulate(std::vector<std::uint32_t>(longest.begin(), longest.begin() + 2), cut, 1);
    const std::int64_t met = memory_counts().peak_bytes;
    EXPECT_GT(met, of_whole_windows);
    stepper.release_activations();
    reset_peak_bytes();
    for (const auto& batch : heaviest_rows(tokens, small.rows(), cut, std::vector<std::int64_t>{6, 2}, 3))
      stepper.reserve_for(batch, cut);
    EXPECT_LE(met, memory_counts().peak_bytes);
  }
}

TEST_F(MemoryLimit, ThreadsGiveUpRoomThatAnotherWindowNeeds) {
  install_memory_counter(0);
  const SmallModel small;
  const auto options = small.options(run::Method::Lora);
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  const auto order = data::longest_rows(tokens, small.rows(), SmallModel::kRows);
  const std::vector<std::uint32_t> one = {order.front()}, few(order.end() - 2, order.end());
  const Cut cut{.micro_batch = 1};
  Stepper stepper(*model, tokens, options);
  stepper.accumulate(one, cut, 0);  // one thread holds the longest row
  install_memory_counter(memory_counts().live_bytes);
  EXPECT_NO_THROW(stepper.accumulate(few, cut, 1));  // the other needs room for a short one
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
