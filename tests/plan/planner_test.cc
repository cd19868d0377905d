#include "plan/planner.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"
#include "plan/document.h"
#include "plan/predictions.h"

namespace batchwright::plan {
namespace {

const SplitPlan& split_of(const Plan& plan, std::int64_t micro) {
  for (const SplitPlan& split : plan.splits) {
    if (split.split.micro_batch == micro) return split;
  }
  throw std::out_of_range("micro-batch");
}

// Qwen3-1.7B, 512 tokens, LoRA r16 on all linear layers, fp16, checkpointing, 4 examples a step: 2870.9,
// 2584.7 and 2379.2 ms a step on a T4 for 1x4, 2x2 and 4x1; 5.45, 5.58 and 5.81 GiB reserved.
std::string seed(const char* gpu) {
  return std::string(
             R"({"model": "qwen3-1.7b", "effective_batch": 4, "seq_len": 512, "method": "lora", "lora_rank": 16,
    "weights": "fp16", "compute": "fp16", "checkpointing": "full", "loss": "chunked", "counter": "reserved", "gpu": ")") +
         gpu + "\"}";
}

TEST(SeedExperiment, T4SavingOrderTimesAndPeaks) {
  const Plan plan = plan_of(seed("T4"));
  const struct {
    std::int64_t micro;
    double seconds, gib;
  } measured[] = {{1, 2.8709, 5.45}, {2, 2.5847, 5.58}, {4, 2.3792, 5.81}};
  for (const auto& row : measured) {
    const SplitPlan& split = split_of(plan, row.micro);
    EXPECT_NEAR(split.step_seconds.mid / row.seconds, 1, 0.15) << row.micro;
    EXPECT_NEAR(split.peak_bytes.mid / (row.gib * 1073741824.0), 1, 0.10) << row.micro;
    EXPECT_EQ(split.fits, Fits::Yes);
  }
  const double saving = 1 - split_of(plan, 4).step_seconds.mid / split_of(plan, 1).step_seconds.mid;
  EXPECT_NEAR(saving, 0.172, 0.05);
  EXPECT_LT(split_of(plan, 2).step_seconds.mid, split_of(plan, 1).step_seconds.mid);
  EXPECT_LT(split_of(plan, 4).step_seconds.mid, split_of(plan, 2).step_seconds.mid);
}

// On the L4 the gap was 41 %: the same host work beside shorter device work. That 2x2 beat 4x1 slightly is
// nothing this model can say: its splits differ there by less than its interval.
TEST(SeedExperiment, TheFasterDeviceShowsTheLargerGap) {
  const Plan t4 = plan_of(seed("T4")), l4 = plan_of(seed("L4"));
  const auto saving = [](const Plan& plan) {
    return 1 - split_of(plan, 4).step_seconds.mid / split_of(plan, 1).step_seconds.mid;
  };
  EXPECT_GT(saving(l4), saving(t4) + 0.08);
  EXPECT_LT(saving(l4), 0.5);
}

TEST(Recommendation, IsTheFastestThatFitsAndSaysWhy) {
  const Plan plan = plan_of(seed("T4"));
  ASSERT_TRUE(plan.recommended);
  EXPECT_EQ(plan.splits[*plan.recommended].split.micro_batch, 4);
  EXPECT_EQ(plan.largest_micro_batch_that_fits, 4);
  EXPECT_NE(plan.reason.find("4x1"), std::string::npos);
}

// The number that decides is printed, and nothing that fits shows a peak above the memory there is.
TEST(Fits, NeverStandsBesideAPeakAboveTheMemory) {
  for (const char* counter : {"allocated", "reserved", "process"}) {
    for (std::int64_t gib = 3; gib <= 16; ++gib) {
      Json request = parse_json(seed("T4"), "test");
      request["counter"] = counter;
      request["memory_bytes"] = gib << 30;
      const Plan plan = plan_of(request.dump());
      for (const SplitPlan& split : plan.splits) {
        EXPECT_DOUBLE_EQ(split.needed_bytes.mid, split.memory.needed);
        EXPECT_EQ(split.fits == Fits::Yes, split.needed_bytes.high <= static_cast<double>(plan.limit_bytes));
        EXPECT_EQ(split.fits == Fits::No, split.needed_bytes.low > static_cast<double>(plan.limit_bytes));
        if (split.fits != Fits::Yes) continue;
        EXPECT_LE(split.peak_bytes.mid, static_cast<double>(plan.limit_bytes)) << counter << gib;
        EXPECT_LE(split.peak_bytes.high, static_cast<double>(plan.limit_bytes)) << counter << gib;
      }
    }
  }
}

TEST(Cpu, AMicroBatchCostsTimeOfItsOwnBeforeCalibration) {
  const Plan plan = plan_of(
      R"({"model": "minilm-l6", "effective_batch": 32, "seq_len": 128,
    "gpu": "cpu", "task": "sequence-classification"})");
  EXPECT_GT(split_of(plan, 1).step_seconds.mid, split_of(plan, 8).step_seconds.mid);
  EXPECT_EQ(plan.request.compute, ComputeType::Fp32);
}

TEST(Recommendation, TiesGoToLessMemory) {
  // Large products: every split takes the same time within 2 %.
  const Plan plan = plan_of(
      R"({"model": "llama-2-7b", "weights": "bf16", "effective_batch": 16, "seq_len": 4096, "gpu": "B200",
    "checkpointing": "full", "attention": "flash", "loss": "chunked", "framework": "pytorch"})");
  ASSERT_TRUE(plan.recommended);
  const SplitPlan& chosen = plan.splits[*plan.recommended];
  for (const SplitPlan& split : plan.splits) {
    if (split.fits != Fits::Yes || split.step_seconds.mid > chosen.step_seconds.mid * 0.98) continue;
    EXPECT_GE(split.memory.needed, chosen.memory.needed);
  }
}

TEST(Recommendation, HeadroomExcludesWhatOnlyJustFits) {
  const std::string request =
      R"({"model": "bert-base-uncased", "effective_batch": 64, "seq_len": 128, "gpu": "T4"})";
  const Plan plan = plan_of(request);
  const auto whole = static_cast<std::int64_t>(split_of(plan, 64).memory.needed * 1.2);
  Json document = parse_json(request, "test");
  document["memory_bytes"] = whole;
  document["headroom"] = 0.5;
  const Plan tight = plan_of(document.dump());
  ASSERT_TRUE(tight.recommended);
  EXPECT_LE(tight.splits[*tight.recommended].memory.needed, 0.5 * static_cast<double>(whole));
}

TEST(NothingFits, ListsChangesThatHelpCheapestFirst) {
  const Plan plan = plan_of(
      R"({"model": "llama-3.1-8b", "effective_batch": 16, "seq_len": 2048, "gpu": "T4", "weights": "fp32", "compute": "fp16"})");
  EXPECT_TRUE(plan.nothing_fits());
  EXPECT_FALSE(plan.recommended);
  EXPECT_FALSE(plan.largest_micro_batch_that_fits);
  ASSERT_FALSE(plan.if_nothing_fits.empty());
  for (const Change& change : plan.if_nothing_fits) {
    EXPECT_EQ(change.fits, Fits::Yes) << change.change;
    EXPECT_LT(change.peak_bytes.mid, plan.splits.back().peak_bytes.mid) << change.change;
    EXPECT_LT(change.needed_bytes, static_cast<double>(plan.limit_bytes)) << change.change;
    EXPECT_GT(change.step_seconds, 0);
  }
}

TEST(NothingFits, SaysHowFarAwayItIsWhereNoChangeIsEnough) {
  const Plan plan = plan_of(
      R"({"model": "llama-3.1-70b", "effective_batch": 8, "seq_len": 2048, "gpu": "T4", "weights": "bf16"})");
  ASSERT_EQ(plan.if_nothing_fits.size(), 1u);
  EXPECT_EQ(plan.if_nothing_fits[0].fits, Fits::No);
  EXPECT_NE(plan.if_nothing_fits[0].change.find("qlora"), std::string::npos);
  EXPECT_NE(plan_text(plan).find("Not enough"), std::string::npos);
}

// A change is listed with others only when it needs them, and what is listed does what it says.
TEST(NothingFits, ListsNoChangeThatIsNotNeeded) {
  const std::string request =
      R"({"model": "llama-3.1-8b", "effective_batch": 16, "seq_len": 2048, "gpu": "A100-40GB", "weights": "bf16"})";
  const Plan plan = plan_of(request);
  EXPECT_TRUE(plan.nothing_fits());
  ASSERT_FALSE(plan.if_nothing_fits.empty());
  for (const Change& change : plan.if_nothing_fits) {
    EXPECT_EQ(change.change.find("lora + method"), std::string::npos) << change.change;
    if (change.change == "checkpointing full") {
      const Plan changed = plan_with(request, "checkpointing", "full");
      EXPECT_NE(changed.splits.back().fits, Fits::No);
      EXPECT_NEAR(changed.splits.back().memory.reserved, change.peak_bytes.mid, 0.02 * change.peak_bytes.mid);
    }
  }
}

// The lesson's mini challenge: token classification runs out of memory at 512 tokens with micro-batch 8 x 4,
// and the batch should be about 64: what is there is 32, and smaller pieces keep 64 without a change of
// method.
TEST(MiniChallenge, KeepsTheEffectiveBatchAndNamesWhatToDo) {
  const std::string request =
      R"({"model": "bert-large-uncased", "task": "token-classification", "effective_batch": 64, "seq_len": 512,
    "gpu": {"name": "small", "memory_gib": 9, "bandwidth_gb_per_s": 300, "bf16_tflops": 60}, "weights": "fp32", "compute": "fp32", "attention": "eager"})";
  const Plan fixed = plan_with(request, "micro_batch", 8);
  EXPECT_EQ(fixed.splits.front().split.accumulation_steps, 8);  // not 4: 8 x 4 is 32
  EXPECT_NE(fixed.splits.front().fits, Fits::Yes);
  ASSERT_FALSE(fixed.if_nothing_fits.empty());
  EXPECT_EQ(fixed.if_nothing_fits.front().change.substr(0, 6), "split ");
  const Plan checkpointed = plan_with(request, "checkpointing", "full");
  ASSERT_TRUE(checkpointed.recommended);
  EXPECT_EQ(checkpointed.splits[*checkpointed.recommended].batch.real, 64);
}

TEST(Rounding, IsWarnedAboutWithTheNearestExactChoices) {
  const Plan plan = plan_of(
      R"({"model": "gpt2", "effective_batch": 100, "micro_batch": 8, "seq_len": 128, "gpu": "T4", "warmup_steps": 500,
    "base_learning_rate": 2e-5, "base_effective_batch": 26})");
  EXPECT_EQ(plan.splits.front().batch.real, 104);
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_NE(plan.warnings.front().find("requested 100, real 104, +4 %"), std::string::npos);
  EXPECT_EQ(plan.warmup->micro_steps, 500 * 13);
  EXPECT_DOUBLE_EQ(plan.learning_rate->linear, 8e-5);  // of what the split really is, 104
  EXPECT_DOUBLE_EQ(plan.learning_rate->sqrt, 4e-5);
}

TEST(Devices, ACpuThatNobodyCalibratedIsSaidToBe) {
  setenv("BATCHWRIGHT_CALIBRATION", "/nowhere/calibration.json", 1);
  const Plan plan = plan_of(
      R"({"model": "minilm-l6", "effective_batch": 32, "seq_len": 128, "gpu": "cpu", "task": "sequence-classification"})");
  unsetenv("BATCHWRIGHT_CALIBRATION");
  ASSERT_FALSE(plan.warnings.empty());
  EXPECT_NE(plan.warnings.front().find("batchwright calibrate"), std::string::npos);
}

TEST(Devices, BatchesThatDoNotDivideAreRoundedUp) {
  const Plan plan =
      plan_of(R"({"model": "gpt2", "effective_batch": 10, "seq_len": 128, "gpu": "T4", "devices": 4})");
  ASSERT_FALSE(plan.splits.empty());
  for (const SplitPlan& split : plan.splits) EXPECT_GE(split.batch.real, 10);
}

TEST(Document, HasEveryFieldThatScriptsRelyOn) {
  const Json document = plan_document(plan_of(seed("T4")));
  for (const char* field :
       {"version", "requested_effective_batch", "splits", "recommended", "reason",
        "largest_micro_batch_that_fits", "learning_rate", "warmup", "if_nothing_fits", "warnings"}) {
    EXPECT_TRUE(document.contains(field)) << field;
  }
  const Json& split = document["splits"][0];
  for (const char* field :
       {"micro_batch", "accumulation_steps", "devices", "effective_batch", "exact", "fits", "peak_bytes",
        "peak_parts", "peak_moment", "step_seconds", "time_parts"}) {
    EXPECT_TRUE(split.contains(field)) << field;
  }
  EXPECT_TRUE(document["learning_rate"].is_null());
  EXPECT_TRUE(split["peak_bytes"]["mid"].is_number_integer());
}

TEST(PlanText, PrintsTheChoiceWithUnitsAndIntervals) {
  const Plan plan = plan_of(seed("T4"));
  const std::string text = plan_text(plan);
  for (const char* word : {"4x1", "GiB", "[", "recommended", "assumed"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
  EXPECT_NE(explain_text(plan, 0).find("###"), std::string::npos);
}

}  // namespace
}  // namespace batchwright::plan
