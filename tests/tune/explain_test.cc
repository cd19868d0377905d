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

TEST(Explain, WaitingForDataIsNamedFirst) {
  SimulatedWorkload workload(Machine{});
  const auto splits = splits_of(4);
  auto trials = measure(workload, splits);
  for (run::Trial& trial : trials) trial.phases["input"] = 0.5 * trial.steps[0].seconds;
  EXPECT_NE(explain(splits, trials, splits[0]).sentence.find("waiting for data"), std::string::npos);
}

}  // namespace
}  // namespace batchwright::tune
