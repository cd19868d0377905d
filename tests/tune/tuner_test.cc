#include "tune/tuner.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "run/test_worker.h"
#include "tune/simulated_workload.h"
#include "tune/token_cuts.h"

namespace batchwright::tune {
namespace {

struct Tuning {
  explicit Tuning(Machine machine = {})
      : workload(std::move(machine)), progress(stderr, Progress::Style::Silent) {}

  TuneOutcome run(const SearchOptions& options, std::optional<double> budget = std::nullopt) {
    run::RunFolder folder(temporary / "run", {{"effective_batch", options.effective_batch}});
    return run_tuning(options, splits_of(options.effective_batch), workload, folder, {budget}, progress,
                      cache, [this] { return workload.now; });
  }
  Json result() const { return read_json_file(temporary / "run" / "result.json"); }

  run::TemporaryFolder temporary;
  SimulatedWorkload workload;
  Progress progress;
  const TuningCache* cache = nullptr;
};

TEST(RunTuning, WritesTheResultThatScriptsRelyOn) {
  Tuning tuning;
  tuning.run(options_for(32));
  const Json result = tuning.result();
  EXPECT_EQ(result.at("version"), 1);
  EXPECT_EQ(result.at("requested_effective_batch"), 32);
  EXPECT_EQ(result.at("trials").size(), 6u);
  const Json& first = result.at("trials").at(0);
  for (const char* field : {"micro_batch", "accumulation_steps", "devices", "layout", "micro_tokens",
                            "checkpointing", "outcome", "observed_micro_batch", "observed_accumulation_steps",
                            "step_seconds", "rounds", "peak_bytes", "phases", "why_dropped"}) {
    EXPECT_TRUE(first.contains(field)) << field;
  }
  for (const char* field :
       {"recommended", "tied_with", "confirmed_on_worst_batch", "largest_that_fits", "largest_and_neighbours",
        "tuning_seconds", "saving_percent", "break_even_steps", "reason", "explanation"}) {
    EXPECT_TRUE(result.contains(field)) << field;
  }
  EXPECT_EQ(result.at("recommended"), 0);
  EXPECT_EQ(result.at("confirmed_on_worst_batch"), true);
  // 1x32 pays the fixed cost 32 times: (32 f + t) against (f + t).
  const double truth =
      100 * (1 - tuning.workload.true_seconds({32, 1, 1}) / tuning.workload.true_seconds({1, 32, 1}));
  EXPECT_NEAR(result.at("saving_percent").at("mid").get<double>(), truth, 3);
  EXPECT_GT(result.at("break_even_steps").get<double>(), 0);
}

SearchOptions with_token_cuts(std::int64_t limit_bytes = 0) {
  SearchOptions options = options_for(32, limit_bytes);
  options.token_cuts = token_cuts(30, 100, 32);
  return options;
}

TEST(TokenCuts, AreSharesOfAStepDownToTheLongestExample) {
  using Cuts = std::vector<run::Split>;
  const auto cut = run::Split::of_tokens;
  EXPECT_EQ(token_cuts(30, 100, 32), (Cuts{cut(512), cut(256), cut(128)}));
  EXPECT_EQ(token_cuts(30, 200, 32), (Cuts{cut(512), cut(256)}));
  EXPECT_EQ(token_cuts(3, 3, 8), (Cuts{cut(64)}));  // finer budgets are the same one
  EXPECT_TRUE(token_cuts(30, 600, 32).empty());
}

TEST(RunTuning, TimesTokenCutsBesideTheChosenSplitAndNeverRecommendsOne) {
  Tuning tuning({.noise = 0.001, .token_cut_gain = 0.5});
  const TuneOutcome outcome = tuning.run(with_token_cuts());
  ASSERT_EQ(outcome.decision.token_cuts.size(), 3u);
  EXPECT_TRUE(outcome.decision.settled);
  const Json result = tuning.result();
  ASSERT_EQ(result.at("trials").size(), 9u);
  EXPECT_EQ(result.at("recommended"), 0);
  const Json& first = result.at("trials").at(6);
  EXPECT_EQ(first.at("micro_tokens"), 512);
  EXPECT_TRUE(first.at("micro_batch").is_null());
  EXPECT_TRUE(first.at("accumulation_steps").is_null());
  EXPECT_EQ(first.at("effective_batch"), 32);
  // 512 tokens are 17 examples: two micro-steps, at half the time.
  const double truth =
      0.5 * tuning.workload.true_seconds({16, 2, 1}) / tuning.workload.true_seconds({32, 1, 1});
  EXPECT_NEAR(first.at("relative").at("mid").get<double>(), truth, 0.05);
}

TEST(RunTuning, ATokenCutComparesOnWindowsOfItsOwnThatTheChosenSplitRan) {
  Tuning tuning;
  tuning.run(with_token_cuts());
  std::set<std::int64_t> cut_windows, split_windows;
  for (const run::TrialRequest& request : tuning.workload.ran) {
    (request.split.is_token_cut() ? cut_windows : split_windows).insert(request.first_step);
  }
  EXPECT_FALSE(cut_windows.empty());
  for (const std::int64_t window : cut_windows) EXPECT_TRUE(split_windows.contains(window)) << window;
}

TEST(RunTuning, ATokenCutThatRunsOutOfMemoryIsNotTimed) {
  // Room for 8 examples of 128 tokens: the cut to 512 tokens runs 17 at once.
  Machine machine;
  machine.limit_bytes = machine.base_bytes + 8 * 128 * machine.token_bytes;
  Tuning tuning(machine);
  const TuneOutcome outcome = tuning.run(with_token_cuts(machine.limit_bytes));
  EXPECT_EQ(outcome.decision.token_cuts.at(0).outcome, run::Outcome::OutOfMemory);
  EXPECT_EQ(outcome.decision.token_cuts.at(2).outcome, run::Outcome::Measured);
}

TEST(RunTuning, ABudgetThatEndsAmongTokenCutsLeavesTheChoiceSettled) {
  Tuning whole;
  whole.run(options_for(32));
  Tuning unlimited;
  unlimited.run(with_token_cuts());
  Tuning tuning;
  const TuneOutcome outcome = tuning.run(with_token_cuts(), whole.workload.now + 0.3);
  EXPECT_LT(tuning.workload.ran.size(), unlimited.workload.ran.size());
  EXPECT_TRUE(outcome.decision.settled);
  EXPECT_EQ(outcome.decision.reason.find("not settled"), std::string::npos) << outcome.decision.reason;
}

TEST(RunTuning, TheSameCommandAgainOnlyReads) {
  Tuning tuning;
  tuning.run(options_for(32));
  const std::size_t trials = tuning.workload.ran.size();
  const Json first = tuning.result();
  tuning.run(options_for(32));
  EXPECT_EQ(tuning.workload.ran.size(), trials);
  EXPECT_EQ(tuning.result().at("recommended"), first.at("recommended"));
  EXPECT_NEAR(tuning.result().at("tuning_seconds").get<double>(), first.at("tuning_seconds").get<double>(),
              1e-6);
}

TEST(RunTuning, AnInterruptLeavesTheBestSoFarAndContinues) {
  Tuning tuning;
  tuning.workload.before = [&](const run::TrialRequest&) {
    if (tuning.workload.ran.size() == 5) throw Error(ErrorKind::Interrupted, "interrupted", "by the test");
  };
  const TuneOutcome interrupted = tuning.run(options_for(32));
  EXPECT_TRUE(interrupted.interrupted);
  EXPECT_TRUE(interrupted.decision.recommended.has_value());
  EXPECT_FALSE(interrupted.decision.settled);
  EXPECT_NE(tuning.result().at("reason").get<std::string>().find("interrupted"), std::string::npos);
  tuning.workload.before = nullptr;
  const TuneOutcome finished = tuning.run(options_for(32));
  EXPECT_FALSE(finished.interrupted);
  EXPECT_TRUE(finished.decision.settled);
}

TEST(RunTuning, TheBudgetHolds) {
  Tuning tuning;
  const double step = tuning.workload.true_seconds({1, 32, 1});
  const TuneOutcome outcome = tuning.run(options_for(32), 12 * step);
  EXPECT_LE(tuning.workload.now, 13 * step);  // the noise of the last trial
  EXPECT_FALSE(outcome.decision.settled);
  EXPECT_TRUE(outcome.decision.recommended.has_value());
  EXPECT_NE(outcome.decision.reason.find("the budget"), std::string::npos) << outcome.decision.reason;
}

TEST(RunTuning, ABudgetTooSmallForAnythingStillMeasuresOneSplit) {
  Tuning tuning;
  const TuneOutcome outcome = tuning.run(options_for(32), 1e-9);
  EXPECT_TRUE(outcome.decision.recommended.has_value());
  EXPECT_FALSE(outcome.decision.settled);
}

TEST(RunTuning, TheBudgetEndsARunningTrial) {
  const run::TemporaryFolder temporary;
  Progress progress(stderr, Progress::Style::Silent);
  InterruptGuard guard;
  run::RunFolder folder(temporary / "run", Json::object());
  run::TrialRunner runner(run::worker_command(temporary, {{"limit_bytes", 300}, {"at", {{"8", "hang"}}}}),
                          &guard, {}, {60, 60, 60, 10});
  const double begin = steady_seconds();
  const TuneOutcome outcome =
      run_tuning(options_for(32, 300), splits_of(32), runner, folder, {3, &guard}, progress);
  EXPECT_LT(steady_seconds() - begin, 20);
  EXPECT_FALSE(outcome.interrupted);
  EXPECT_FALSE(guard.stops_at());
  ASSERT_TRUE(outcome.decision.recommended.has_value());
  EXPECT_EQ(outcome.decision.trials[*outcome.decision.recommended].split.micro_batch, 16);
  EXPECT_NE(outcome.decision.reason.find("the budget"), std::string::npos) << outcome.decision.reason;
}

// The real runner with a real child process, which dies, hangs and runs out of memory on the way.
TEST(RunTuning, ARealWorkerThatMisbehavesCostsItsTrialsOnly) {
  const run::TemporaryFolder temporary;
  Progress progress(stderr, Progress::Style::Silent);
  const Json plan = {{"limit_bytes", 300}, {"at", {{"8", "kill"}}}, {"once", (temporary / "once").string()}};
  run::RunFolder folder(temporary / "run", Json::object());
  run::TrialRunner runner(run::worker_command(temporary, plan), nullptr, {}, {20, 20, 1, 10});
  const TuneOutcome outcome = run_tuning(options_for(32, 300), splits_of(32), runner, folder, {}, progress);
  const Decision& decision = outcome.decision;
  ASSERT_TRUE(decision.recommended.has_value());
  EXPECT_EQ(decision.trials[*decision.recommended].split.micro_batch, 16);
  EXPECT_EQ(decision.trials[0].outcome, run::Outcome::OutOfMemory);  // 100 + 10 * 32 > 300
  EXPECT_EQ(decision.trials[2].outcome, run::Outcome::Measured);     // killed once, then measured
  EXPECT_TRUE(decision.confirmed_on_worst_batch);
  EXPECT_EQ(read_json_file(temporary / "run" / "run.json").at("facts").at("framework"), "test worker");
}

TEST(RunTuning, TheCacheAnswersARepeatedQuestionWithoutATrial) {
  const run::TemporaryFolder folder;
  const TuningCache cache(folder / "cache", {{"question", 1}}), other(folder / "cache", {{"question", 2}});
  Tuning first, again, another;
  first.cache = again.cache = &cache;
  another.cache = &other;
  SearchOptions options;
  options.effective_batch = 32;
  const TuneOutcome measured = first.run(options);
  ASSERT_TRUE(measured.decision.recommended);
  const TuneOutcome answered = again.run(options);
  EXPECT_TRUE(again.workload.ran.empty());
  EXPECT_EQ(answered.decision.recommended, measured.decision.recommended);
  EXPECT_EQ(again.result().at("trials"), first.result().at("trials"));
  another.run(options);
  EXPECT_FALSE(another.workload.ran.empty());
  // What is damaged, or stopped by its budget, answers nothing.
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache"))
    write_file_atomic(entry.path(), "{");
  Tuning damaged;
  damaged.cache = &cache;
  damaged.run(options, 0.5);
  EXPECT_FALSE(damaged.workload.ran.empty());
  EXPECT_FALSE(cache.find());
}

}  // namespace
}  // namespace batchwright::tune
