#include "tune/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tune/simulated_workload.h"

namespace batchwright::tune {
namespace {

std::vector<run::Trial> measure(SimulatedWorkload& workload, const std::vector<run::Split>& splits,
                                std::int64_t steps = 5) {
  std::vector<run::Trial> trials;
  for (const run::Split& split : splits) {
    run::TrialRequest request;
    request.split = split;
    request.steps = steps;
    trials.push_back(workload.run(request));
  }
  return trials;
}

bool is_listed(const Explanation& explanation, const std::string& part) {
  return std::any_of(explanation.not_separable.begin(), explanation.not_separable.end(),
                     [&](const auto& entry) { return entry.part == part; });
}

TEST(Explain, RecoversThePartsThatTheMachineIsMadeOf) {
  Machine machine;
  machine.noise = 0;
  machine.window_spread = 0;
  SimulatedWorkload workload(machine);
  const auto splits = splits_of(32);
  const Explanation explanation = explain(splits, measure(workload, splits), splits[2]);
  EXPECT_NEAR(*explanation.fixed_seconds_per_micro_step, machine.fixed_seconds, 1e-6);
  EXPECT_NEAR(*explanation.seconds_per_token, machine.token_seconds, 1e-9);
  EXPECT_NEAR(*explanation.seconds_per_step, machine.optimizer_seconds, 1e-9);
  for (const auto& residual : explanation.residuals) EXPECT_NEAR(residual.mid, 0, 1e-6);
  double sum = 0;
  for (const auto& [name, share] : explanation.shares) sum += share;
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_NEAR(explanation.shares.at("fixed_per_micro_step"), 4 * 0.004 / workload.true_seconds(splits[2]),
              1e-4);
  EXPECT_NE(explanation.sentence.find("4.00 ms before its first token"), std::string::npos)
      << explanation.sentence;
  EXPECT_TRUE(is_listed(explanation, "matrix_efficiency"));
}

TEST(Explain, ClaimsNoFixedCostThatTheClockCannotTellFromNone) {
  Machine machine;
  machine.noise = 1;
  SimulatedWorkload workload(machine);
  const auto splits = splits_of(32);
  const Explanation explanation = explain(splits, measure(workload, splits), splits[2]);
  ASSERT_TRUE(explanation.fixed_interval.has_value());
  ASSERT_EQ(explanation.fixed_interval->low, 0);
  ASSERT_GT(*explanation.fixed_seconds_per_micro_step, 0);
  EXPECT_NE(explanation.sentence.find("vary too much"), std::string::npos) << explanation.sentence;
}

TEST(Explain, AValleyStandsInTheResidualsNotInTheLine) {
  // 2x2 beats 4x1: no line in the number of micro-steps can explain that.
  Machine machine;
  machine.noise = machine.window_spread = 0;
  machine.fixed_seconds = 0.0001;
  machine.shape = [](std::int64_t micro) { return micro == 4 ? 1.1 : 1.0; };
  SimulatedWorkload workload(machine);
  const auto splits = splits_of(4);
  const Explanation explanation = explain(splits, measure(workload, splits), splits[1]);
  EXPECT_GT(explanation.residuals[0].mid, 0);
  EXPECT_LT(explanation.residuals[1].mid, 0);
  EXPECT_NEAR(explanation.row_cost[0].relative, (0.0001 + 1.1 * 0.0024) / (0.0002 + 0.0024), 1e-3);
  EXPECT_NE(explanation.sentence.find("a token costs 1.08 times as much there"), std::string::npos)
      << explanation.sentence;
}

TEST(Explain, WhatCannotBeToldApartIsNullWithTheReason) {
  SimulatedWorkload workload(Machine{});
  const auto splits = splits_of(4);
  const Explanation one = explain(splits, measure(workload, {splits[0]}), splits[0]);
  EXPECT_FALSE(one.fixed_seconds_per_micro_step.has_value());
  EXPECT_TRUE(is_listed(one, "fixed_seconds_per_micro_step"));
  EXPECT_TRUE(to_json(one).at("fixed_seconds_per_micro_step").is_null());

  // The T4 experiment: whole-run times only, 200 steps each, no tokens and no phases.
  std::vector<run::Trial> trials;
  for (const auto& [micro, total] : {std::pair{4, 238.2}, std::pair{2, 258.8}, std::pair{1, 287.6}}) {
    run::Trial trial;
    trial.request.split = {micro, 4 / micro, 1};
    trial.outcome = run::Outcome::Measured;
    trial.steps = {{0, total / 200, 0, 0}};
    trials.push_back(trial);
  }
  const Explanation seed = explain(splits, trials, splits[0]);
  EXPECT_FALSE(seed.seconds_per_token.has_value());
  EXPECT_FALSE(seed.seconds_per_step.has_value());
  EXPECT_TRUE(is_listed(seed, "seconds_per_token"));
  EXPECT_TRUE(is_listed(seed, "seconds_per_step"));
  EXPECT_NEAR(*seed.fixed_seconds_per_micro_step, 0.0809,
              0.001);  // least squares through 1.191, 1.294, 1.438 s
}

hardware::Calibration calibrated() {
  // Matrices of 60 rows run at half the rate of those of 240 and more.
  hardware::Calibration calibration;
  for (const auto& [rows, seconds] : {std::pair{60, 2e-4}, std::pair{240, 4e-4}, std::pair{960, 16e-4}})
    calibration.products.push_back({rows, 100, 100, seconds});
  return calibration;
}

TEST(Explain, ACalibrationTellsTheMatrixCostFromTheFixedCost) {
  Machine machine;
  machine.noise = machine.window_spread = 0;
  machine.shape = [](std::int64_t micro) { return micro <= 2 ? 2.0 : 1.0; };
  SimulatedWorkload workload(machine);
  const std::vector<run::Split> splits = {{32, 1, 1}, {16, 2, 1}, {8, 4, 1}, {2, 16, 1}};
  const auto trials = measure(workload, splits);
  const hardware::Calibration calibration = calibrated();
  const Explanation without = explain(splits, trials, splits[0]);
  const Explanation with = explain(splits, trials, splits[0], {&calibration, false});
  EXPECT_GT(*without.fixed_seconds_per_micro_step,
            1.2 * machine.fixed_seconds);  // it took the matrices' cost in
  EXPECT_NEAR(*with.fixed_seconds_per_micro_step, machine.fixed_seconds, 1e-5);
  ASSERT_EQ(with.matrix_efficiency.size(), 4u);
  EXPECT_NEAR(with.matrix_efficiency[0].efficiency, 1, 1e-9);
  EXPECT_NEAR(with.matrix_efficiency[3].efficiency, 0.5, 1e-9);
  EXPECT_FALSE(is_listed(with, "matrix_efficiency"));
  EXPECT_TRUE(to_json(without).at("matrix_efficiency").is_null());
}

TEST(Explain, IntervalsCoverTheParts) {
  Machine machine;
  machine.window_spread = 0;
  SimulatedWorkload workload(machine);
  const auto splits = splits_of(32);
  const Explanation explanation = explain(splits, measure(workload, splits, 12), splits[2]);
  ASSERT_TRUE(explanation.fixed_interval && explanation.token_interval);
  EXPECT_LT(explanation.fixed_interval->low, machine.fixed_seconds);
  EXPECT_GT(explanation.fixed_interval->high, machine.fixed_seconds);
  EXPECT_LT(explanation.fixed_interval->high - explanation.fixed_interval->low, machine.fixed_seconds);
}

// The experiment that started this project: BERT-like fine-tuning on a T4, one run a split, a phase timer and
// the utilisation that nvidia-smi printed. To the timer all three look compute-bound: forward and backward
// are 96 % of each step.
TEST(Explain, TheT4ExperimentIsTheDeviceWaiting) {
  const auto row = [](std::int64_t micro, double step, double forward, double backward, double residual,
                      double busy) {
    run::Trial trial;
    trial.request.split = {micro, 4 / micro, 1};
    trial.outcome = run::Outcome::Measured;
    trial.steps = {{0, step, 0, 0}};
    trial.phases = {
        {"forward", forward}, {"backward", backward}, {"optimizer", 0.010}, {"residual", residual}};
    trial.device_busy_share = busy;
    return trial;
  };
  const std::vector<run::Trial> trials = {row(4, 2.3792, 0.7787, 1.5473, 0.0407, 0.82),
                                          row(2, 2.5847, 0.8351, 1.6748, 0.0607, 0.78),
                                          row(1, 2.8709, 0.9863, 1.7651, 0.1057, 0.59)};
  const auto splits = splits_of(4);
  const Explanation seed = explain(splits, trials, splits[0], {nullptr, true});
  EXPECT_NE(seed.sentence.find("because the device waits, not because it computes"), std::string::npos)
      << seed.sentence;
  EXPECT_NE(seed.sentence.find("idle 41 % of a step at 1x4"), std::string::npos) << seed.sentence;
  ASSERT_EQ(seed.device_idle.size(), 3u);
  EXPECT_NEAR(seed.device_idle[2].seconds, 1.177, 0.001);
  ASSERT_EQ(seed.matrix_efficiency.size(), 3u);
  EXPECT_NEAR(seed.matrix_efficiency[2].efficiency, 1, 1e-9);  // the smallest kernels are no slower in all
  EXPECT_FALSE(seed.seconds_per_token.has_value());
  const auto residual = std::find_if(seed.phase_costs.begin(), seed.phase_costs.end(),
                                     [](const auto& cost) { return cost.phase == "residual"; });
  ASSERT_NE(residual, seed.phase_costs.end());
  EXPECT_NEAR(residual->seconds_per_micro_step, 0.0217, 0.0005);
}

TEST(Explain, LaunchesThatTakeAsLongAsTheKernelsAreNamed) {
  SimulatedWorkload workload(Machine{});
  const auto splits = splits_of(4);
  auto trials = measure(workload, splits);
  for (run::Trial& trial : trials) {
    trial.phases = {{"forward", 0.4 * trial.steps[0].seconds}, {"backward", 0.5 * trial.steps[0].seconds}};
    if (trial.request.split.micro_batch == 1) trial.enqueue = trial.phases;
  }
  EXPECT_NE(explain(splits, trials, splits[0]).sentence.find("as long to launch the kernels"),
            std::string::npos);
}

TEST(Explain, RemovableCausesAreRecommendedForAScriptOnly) {
  SimulatedWorkload workload(Machine{});
  const auto splits = splits_of(4);
  auto trials = measure(workload, splits);
  for (run::Trial& trial : trials) {
    trial.phases["input"] = 0.15 * trial.steps[0].seconds;
    for (run::TimedStep& step : trial.steps) step.tokens = step.padded_tokens / 2;
  }
  const Explanation script = explain(splits, trials, splits[0], {nullptr, true});
  const auto share_of = [&](const std::string& cause) {
    const auto found = std::find_if(script.recommendations.begin(), script.recommendations.end(),
                                    [&](const auto& advice) { return advice.cause == cause; });
    return found == script.recommendations.end() ? 0.0 : found->share;
  };
  EXPECT_NEAR(share_of("input"), 0.15, 0.02);
  EXPECT_GT(share_of("padding"), 0.05);
  for (std::size_t i = 1; i < script.recommendations.size(); ++i)
    EXPECT_GE(script.recommendations[i - 1].seconds, script.recommendations[i].seconds);
  EXPECT_TRUE(explain(splits, trials, splits[0]).recommendations.empty());
}

TEST(Explain, WaitingForDataIsNamedFirst) {
  SimulatedWorkload workload(Machine{});
  const auto splits = splits_of(4);
  auto trials = measure(workload, splits);
  for (run::Trial& trial : trials) trial.phases["input"] = 0.5 * trial.steps[0].seconds;
  EXPECT_NE(explain(splits, trials, splits[0]).sentence.find("waiting for data"), std::string::npos);
}

}  // namespace
}  // namespace batchwright::tune
