#include "tune/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "tune/decision.h"
#include "tune/simulated_workload.h"

namespace batchwright::tune {
namespace {

using run::Outcome;

double wall_seconds(const std::vector<run::Trial>& trials) {
  double sum = 0;
  for (const run::Trial& trial : trials) sum += trial.wall_seconds;
  return sum;
}

double least_seconds(const SimulatedWorkload& workload, const std::vector<run::Split>& splits) {
  double least = workload.true_seconds(splits.front());
  for (const run::Split& split : splits) least = std::min(least, workload.true_seconds(split));
  return least;
}

// A machine drawn at random: flat, valley-shaped and steep landscapes, quiet and noisy clocks.
Machine random_machine(std::uint64_t seed) {
  RandomStream random(seed, RandomUse::Test, 7);
  Machine machine;
  machine.seed = seed;
  machine.fixed_seconds = 0.0005 * std::exp(4 * random.uniform());
  machine.noise = 0.005 * std::exp(1.8 * random.uniform());
  const double valley = std::exp2(6 * random.uniform()), depth = 0.08 * random.uniform();
  machine.shape = [valley, depth](std::int64_t micro) {
    const double distance = std::log2(static_cast<double>(micro) / valley);
    return 1 + depth * distance * distance;
  };
  return machine;
}

TEST(Search, ChoosesTheFastestSplitAtAFractionOfTheSweepsCost) {
  constexpr int kMachines = 120;
  int near_the_best = 0;
  double worst_cost = 0;
  for (int seed = 0; seed < kMachines; ++seed) {
    const std::vector<run::Split> splits = splits_of(seed % 2 == 0 ? 32 : 64);
    SimulatedWorkload workload(random_machine(static_cast<std::uint64_t>(seed)));
    const SearchOptions options = options_for(splits.front().micro_batch);
    const auto trials = search_to_the_end(options, splits, workload);
    const Decision decision = decide(options, splits, trials, 1);
    ASSERT_TRUE(decision.recommended.has_value());
    EXPECT_TRUE(decision.confirmed_on_worst_batch);
    double sweep = 0;
    for (const run::Split& split : splits) sweep += 50 * workload.true_seconds(split);
    worst_cost = std::max(worst_cost, wall_seconds(trials) / sweep);
    near_the_best +=
        workload.true_seconds(splits[*decision.recommended]) <= 1.02 * least_seconds(workload, splits);
  }
  EXPECT_LE(worst_cost, 0.30);
  EXPECT_GE(near_the_best, 0.95 * kMachines);
}

// A person reads both columns: the time of a split is that of the best times its ratio to it.
TEST(Search, TimesAndRatiosOfATableStandInTheSameOrder) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Machine machine = random_machine(seed);
    machine.noise = 0.5;
    SimulatedWorkload workload(machine);
    const std::vector<run::Split> splits = splits_of(32);
    const SearchOptions options = options_for(32);
    const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
    ASSERT_TRUE(decision.recommended.has_value());
    const double best = decision.trials[*decision.recommended].step_seconds->mid;
    for (const SplitResult& result : decision.trials) {
      if (!result.relative) continue;
      EXPECT_NEAR(result.step_seconds->mid / best, result.relative->mid, 1e-9) << seed;
    }
  }
}

TEST(Search, TheBoundaryIsFoundWithFewFailuresWhereMemoryIsLinear) {
  for (std::int64_t fits = 1; fits <= 64; fits *= 2) {
    Machine machine;
    const std::vector<run::Split> splits = splits_of(64);
    machine.limit_bytes = SimulatedWorkload(machine).peak_bytes(fits) + (1 << 20);
    SimulatedWorkload workload(machine);
    const SearchOptions options = options_for(64, machine.limit_bytes);
    const auto trials = search_to_the_end(options, splits, workload);
    const Decision decision = decide(options, splits, trials, 1);
    EXPECT_EQ(splits[*decision.largest_that_fits].micro_batch, fits);
    EXPECT_LE(splits[*decision.recommended].micro_batch, fits);
    const auto failures = std::count_if(trials.begin(), trials.end(), [](const run::Trial& trial) {
      return trial.outcome == Outcome::OutOfMemory;
    });
    // The second point of the line lies at four times the first, so it fails too where only one example fits.
    EXPECT_EQ(failures, fits == 64 ? 0 : fits == 1 ? 2 : 1) << fits;
    const auto probes = std::count_if(trials.begin(), trials.end(), [](const run::Trial& trial) {
      return trial.request.batch == "longest";
    });
    EXPECT_LE(probes, 6) << fits;
  }
}

// A script's trial is a start of its own. With a limit that is known, what surely fails is never started.
TEST(Search, AScriptsLargestSplitIsFoundWithoutRunningOutOfMemory) {
  for (std::int64_t fits = 1; fits <= 64; fits *= 2) {
    Machine machine;
    machine.every_batch_is_longest = true;
    const std::vector<run::Split> splits = splits_of(64);
    machine.limit_bytes = SimulatedWorkload(machine).peak_bytes(fits) + (1 << 20);
    SimulatedWorkload workload(machine);
    SearchOptions options = options_for(64, machine.limit_bytes);
    options.probe_longest = false;
    options.starts_are_dear = true;
    const auto trials = search_to_the_end(options, splits, workload);
    const Decision decision = decide(options, splits, trials, 1);
    ASSERT_TRUE(decision.largest_that_fits) << fits;
    EXPECT_EQ(splits[*decision.largest_that_fits].micro_batch, fits);
    const auto failures = std::count_if(trials.begin(), trials.end(), [](const run::Trial& trial) {
      return trial.outcome == Outcome::OutOfMemory;
    });
    EXPECT_LE(failures, fits <= 8 ? 2 : 0) << fits;
    for (std::size_t i = 0; failures == 0 && i < *decision.largest_that_fits; ++i)
      EXPECT_NE(decision.trials[i].why_dropped.find("is predicted to need"), std::string::npos) << fits;
  }
}

// The address space of a process may hardly grow from split to split, and then not be enough.
TEST(Search, AScriptsFlatPeaksCostOneFailure) {
  Machine machine;
  machine.limit_bytes = 1ll << 30;
  SimulatedWorkload workload(machine);
  workload.failure = [&](const run::TrialRequest& request) -> std::optional<run::Trial> {
    run::TrialRecord record(request);
    if (request.split.micro_batch > 8) return record.finish(Outcome::OutOfMemory, "needs more");
    run::StepReport step;
    step.micro_steps = request.split.accumulation_steps;
    step.examples = request.split.effective_batch();
    step.peak_bytes = 900ll << 20;
    step.seconds = workload.true_seconds(request.split);
    for (std::int64_t i = 0; i < request.warmup_steps + request.steps; ++i) record.add(step);
    return record.finish(Outcome::Measured, "");
  };
  const std::vector<run::Split> splits = splits_of(64);
  SearchOptions options = options_for(64, machine.limit_bytes);
  options.probe_longest = false;
  options.starts_are_dear = true;
  const auto trials = search_to_the_end(options, splits, workload);
  EXPECT_EQ(splits[*search_state(options, splits, trials).largest_that_fits].micro_batch, 8);
  EXPECT_EQ(std::count_if(trials.begin(), trials.end(),
                          [](const run::Trial& trial) { return trial.outcome == Outcome::OutOfMemory; }),
            1);
}

TEST(Search, MicroBatchesThatRunSideBySideAreProbedTogether) {
  // Two threads: 1x64 holds two examples at a time, and so does 2x32, which is sharded.
  Machine machine;
  const std::vector<run::Split> splits = splits_of(64);
  SimulatedWorkload sizes(machine);
  machine.limit_bytes = sizes.peak_bytes(24);
  SimulatedWorkload workload(machine);
  SearchOptions options = options_for(64, machine.limit_bytes);
  options.parallel_micro_batches = 2;
  const auto trials = search_to_the_end(options, splits, workload);
  EXPECT_EQ(splits[*search_state(options, splits, trials).largest_that_fits].micro_batch, 16);
  options.parallel_micro_batches = 8;
  EXPECT_EQ(search_state(options, splits, {}).next->split, (run::Split{1, 8, 1}));
}

TEST(Search, AMisleadingPeakCostsOneMoreFailureOnly) {
  // The smallest micro-batches peak in the optimizer, so the first slope is zero and predicts that all fit.
  Machine machine;
  machine.limit_bytes = 1ll << 30;
  SimulatedWorkload workload(machine);
  workload.failure = [](const run::TrialRequest& request) -> std::optional<run::Trial> {
    run::TrialRecord record(request);
    if (request.split.micro_batch > 8) return record.finish(Outcome::OutOfMemory, "needs more");
    if (request.batch != "longest") return std::nullopt;
    run::StepReport step;
    step.micro_steps = request.split.accumulation_steps;
    step.examples = request.split.effective_batch();
    step.peak_bytes = 900ll << 20;
    step.seconds = 0.1;
    for (std::int64_t i = 0; i < request.steps; ++i) record.add(step);
    return record.finish(Outcome::Measured, "");
  };
  const std::vector<run::Split> splits = splits_of(64);
  const SearchOptions options = options_for(64, machine.limit_bytes);
  const auto trials = search_to_the_end(options, splits, workload);
  EXPECT_EQ(splits[*search_state(options, splits, trials).largest_that_fits].micro_batch, 8);
  EXPECT_LE(std::count_if(trials.begin(), trials.end(),
                          [](const run::Trial& trial) { return trial.outcome == Outcome::OutOfMemory; }),
            2);
}

TEST(Search, NothingFitsIsAnAnswer) {
  Machine machine;
  machine.limit_bytes = 1 << 20;
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = splits_of(32);
  const SearchOptions options = options_for(32, machine.limit_bytes);
  const auto trials = search_to_the_end(options, splits, workload);
  EXPECT_EQ(trials.size(), 1u);  // when the smallest fails, no larger one is tried
  const Decision decision = decide(options, splits, trials, 1);
  EXPECT_FALSE(decision.recommended.has_value());
  EXPECT_NE(decision.reason.find("nothing fits"), std::string::npos);
  EXPECT_EQ(decision.trials.front().outcome, Outcome::NotTried);
}

TEST(Search, RoundsAreInterleavedOnTheSameWindows) {
  Machine machine;
  machine.fixed_seconds = 0.0002;  // close together, so that one round does not decide
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = splits_of(32);
  const SearchOptions options = options_for(32);
  search_to_the_end(options, splits, workload);
  std::vector<std::int64_t> first_steps;
  std::set<std::string> in_round;
  for (const run::TrialRequest& request : workload.ran) {
    if (request.batch != "sampled") continue;
    EXPECT_EQ(request.warmup_steps, 1);
    if (first_steps.empty() || request.first_step != first_steps.back()) {
      EXPECT_TRUE(first_steps.empty() ||
                  request.first_step > first_steps.back());  // a round never comes back
      first_steps.push_back(request.first_step);
      in_round.clear();
    }
    EXPECT_TRUE(in_round.insert(run::to_string(request.split)).second);
  }
  EXPECT_GE(first_steps.size(), 2u);
}

TEST(Search, AmongTiesTheOneWithLessMemoryIsRecommended) {
  Machine machine;
  machine.fixed_seconds = 0;  // only memory differs
  machine.noise = 0.003;
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = splits_of(16);
  const SearchOptions options = options_for(16);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  EXPECT_EQ(splits[*decision.recommended].micro_batch, 1);
  EXPECT_EQ(decision.tied_with.size(), splits.size() - 1);
  EXPECT_TRUE(decision.settled);
}

// A kill at any moment: the search that reads its trials back asks for the very next one.
TEST(Search, ContinuesFromAnyPrefixOfItsTrials) {
  Machine machine = random_machine(11);
  machine.limit_bytes = SimulatedWorkload(machine).peak_bytes(16) + 1;
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = splits_of(64);
  const SearchOptions options = options_for(64, machine.limit_bytes);
  const auto trials = search_to_the_end(options, splits, workload);
  for (std::size_t done = 0; done < trials.size(); ++done) {
    const auto next = search_state(options, splits, std::span(trials).first(done)).next;
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(*next, trials[done].request) << done;
  }
}

std::optional<run::Trial> fail(const run::TrialRequest& request, Outcome outcome) {
  return run::TrialRecord(request).finish(outcome, "planted");
}

TEST(Search, ACrashIsTriedAgainOnceAndAHangNotAtAll) {
  SimulatedWorkload workload(Machine{});
  int crashes = 0;
  workload.failure = [&](const run::TrialRequest& request) -> std::optional<run::Trial> {
    if (request.batch == "longest") return std::nullopt;
    if (request.split.micro_batch == 8) return fail(request, Outcome::TimedOut);
    if (request.split.micro_batch == 4) return fail(request, Outcome::Crashed);
    if (request.split.micro_batch == 2 && crashes++ == 0) return fail(request, Outcome::Crashed);
    return std::nullopt;
  };
  const std::vector<run::Split> splits = splits_of(16);
  const SearchOptions options = options_for(16);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  const auto runs_of = [&](std::int64_t micro) {
    return std::count_if(workload.ran.begin(), workload.ran.end(), [&](const run::TrialRequest& request) {
      return request.split.micro_batch == micro && request.batch == "sampled";
    });
  };
  EXPECT_EQ(runs_of(8), 1);
  EXPECT_EQ(runs_of(4), 2);
  EXPECT_EQ(decision.trials[1].outcome, Outcome::TimedOut);
  EXPECT_EQ(decision.trials[2].outcome, Outcome::Crashed);
  EXPECT_EQ(decision.trials[2].why_dropped, "planted");
  EXPECT_EQ(decision.trials[3].outcome, Outcome::Measured);
  EXPECT_EQ(splits[*decision.recommended].micro_batch, 16);
}

TEST(Search, ACommandThatCrashesWhateverTheSplitIsNotStartedForEachOfThem) {
  const std::vector<run::Split> splits = splits_of(16);
  SearchOptions options = options_for(16);
  options.starts_are_dear = true;
  options.probe_longest = false;
  const auto crashing = [&](const std::function<std::string(std::int64_t)>& words) {
    SimulatedWorkload workload(Machine{});
    workload.failure = [&](const run::TrialRequest& request) -> std::optional<run::Trial> {
      return run::TrialRecord(request).finish(Outcome::Crashed, words(request.split.micro_batch));
    };
    const auto trials = search_to_the_end(options, splits, workload);
    return std::pair(trials.size(), decide(options, splits, trials, 1));
  };
  const auto [starts, decision] =
      crashing([](std::int64_t micro) { return "unknown argument --batch " + std::to_string(micro); });
  EXPECT_EQ(starts, 4u);  // two of each of two splits
  EXPECT_FALSE(decision.recommended.has_value());
  EXPECT_NE(decision.reason.find("--overwrite"), std::string::npos) << decision.reason;
  EXPECT_EQ(decision.trials.back().why_dropped, "not started: 16x1 and 8x2 crashed alike");
  const auto [all, other] =
      crashing([](std::int64_t micro) { return "no shape " + std::string(micro, 'x'); });
  EXPECT_EQ(all, 2 * splits.size());
}

TEST(Search, ARejectedSplitIsNeverRecommended) {
  SimulatedWorkload workload(Machine{});
  workload.failure = [](const run::TrialRequest& request) -> std::optional<run::Trial> {
    return request.split.micro_batch == 16 ? fail(request, Outcome::Rejected) : std::nullopt;
  };
  const std::vector<run::Split> splits = splits_of(16);
  const SearchOptions options = options_for(16);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  EXPECT_EQ(splits[*decision.recommended].micro_batch, 8);
}

TEST(Search, AWinnerThatFailsOnTheWorstBatchIsReplaced) {
  SimulatedWorkload workload(Machine{});
  workload.failure = [](const run::TrialRequest& request) -> std::optional<run::Trial> {
    const bool confirmation = request.batch == "longest" && request.split.effective_batch() == 16;
    return confirmation && request.split.micro_batch >= 8 ? fail(request, Outcome::OutOfMemory)
                                                          : std::nullopt;
  };
  const std::vector<run::Split> splits = splits_of(16);
  const SearchOptions options = options_for(16);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  ASSERT_TRUE(decision.recommended.has_value());
  EXPECT_EQ(splits[*decision.recommended].micro_batch, 4);
  EXPECT_TRUE(decision.confirmed_on_worst_batch);
}

TEST(Search, OneSplitNeedsNoRace) {
  SimulatedWorkload workload(Machine{});
  const std::vector<run::Split> splits = splits_of(1);
  const SearchOptions options = options_for(1);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  EXPECT_EQ(decision.recommended, 0u);
  EXPECT_FALSE(decision.saving.has_value());
}

TEST(Search, ASplitThatIsRoundedUpIsComparedPerExample) {
  // 12x3 trains on 36 examples where 34 were asked for: its longer step is not held against it.
  Machine machine;
  machine.noise = 0.001;
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = {{34, 1, 1}, {12, 3, 1}, {2, 17, 1}};
  const SearchOptions options = options_for(34);
  const Decision decision = decide(options, splits, search_to_the_end(options, splits, workload), 1);
  const double per_example = workload.true_seconds({12, 3, 1}) * 34 / 36 / workload.true_seconds({34, 1, 1});
  EXPECT_NEAR(decision.trials[1].relative->mid, per_example, 0.03);
}

TEST(Search, ExhaustiveRunsEverySplitTenTimesFiveSteps) {
  Machine machine;
  SimulatedWorkload workload(machine);
  workload.failure = [](const run::TrialRequest& request) -> std::optional<run::Trial> {
    return request.split.micro_batch == 16 ? fail(request, Outcome::OutOfMemory) : std::nullopt;
  };
  const std::vector<run::Split> splits = splits_of(16);
  SearchOptions options = options_for(16);
  options.exhaustive = true;
  const auto trials = search_to_the_end(options, splits, workload);
  const Decision decision = decide(options, splits, trials, 1);
  EXPECT_EQ(decision.trials[0].outcome, Outcome::OutOfMemory);
  EXPECT_EQ(decision.trials[0].rounds, 0);
  for (std::size_t i = 1; i < splits.size(); ++i) EXPECT_EQ(decision.trials[i].rounds, 10) << i;
  EXPECT_EQ(splits[*decision.recommended].micro_batch, 8);
  EXPECT_EQ(splits[*decision.largest_that_fits].micro_batch, 8);
  EXPECT_TRUE(decision.settled);
}

}  // namespace
}  // namespace batchwright::tune
