#include "tune/equivalence.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace batchwright::tune {
namespace {

using run::MicroStepEvidence;
using run::ObservedRun;
using run::StepEvidence;
using run::StepReport;

// A run in which each micro-batch's loss is `loss` / accumulation steps x factor, and whose gradient norm is
// three times the loss that was summed so far.
ObservedRun observed(const run::Split& split, double factor = 1, std::size_t steps = 3) {
  ObservedRun run;
  run.split = split;
  run.outcome = run::Outcome::Measured;
  for (std::size_t i = 0; i < steps; ++i) {
    StepEvidence evidence;
    evidence.data = std::to_string(i);
    const double loss =
        factor * (1.0 - 0.1 * static_cast<double>(i)) / static_cast<double>(split.accumulation_steps);
    double gradient = 0;
    for (std::int64_t k = 0; k < split.accumulation_steps; ++k) {
      evidence.micro_steps.push_back(
          {loss, gradient, gradient + 3 * loss, split.micro_batch, split.micro_batch});
      gradient += 3 * loss;
    }
    evidence.scheduler_steps = i > 0 ? 1 : 0;
    StepReport report;
    report.evidence = evidence;
    report.learning_rate = 1e-3;
    run.steps.push_back({{0, report}});
  }
  return run;
}

StepEvidence& evidence(ObservedRun& run, std::size_t step) { return *run.steps[step].at(0).evidence; }

SplitComparison compared(const ObservedRun& run, const ObservedRun& reference = observed({16, 1, 1}),
                         const ObservedRun* repeat = nullptr) {
  const std::vector<ObservedRun> runs = {reference, run};
  return compare_runs(runs, repeat).splits[1];
}

TEST(CompareRuns, EqualRunsAreTheSame) {
  const SplitComparison same = compared(observed({4, 4, 1}));
  EXPECT_EQ(same.verdict, Equivalent::Same) << same.why;
  EXPECT_NEAR(*same.gradient_factor, 1, 1e-9);
  EXPECT_NEAR(*same.loss_difference, 0, 1e-9);
}

TEST(CompareRuns, AFactorOfTheAccumulationStepsIsNamed) {
  EXPECT_EQ(compared(observed({4, 4, 1}, 4)).kind, "no_division");
  EXPECT_EQ(compared(observed({4, 4, 1}, 0.25)).kind, "double_division");
  // Against 8x2 the factor is that of the accumulation steps beyond 2.
  EXPECT_EQ(compared(observed({4, 4, 1}, 2), observed({8, 2, 1})).kind, "no_division");
  const SplitComparison other = compared(observed({4, 4, 1}, 3));
  EXPECT_EQ(other.verdict, Equivalent::Different);
  EXPECT_EQ(other.kind, "");
}

TEST(CompareRuns, ZeroGradientsProveNothing) {
  const SplitComparison zero = compared(observed({4, 4, 1}, 0), observed({16, 1, 1}, 0));
  EXPECT_EQ(zero.verdict, Equivalent::CannotTell) << zero.why;
  EXPECT_NE(zero.why.find("gradient of the first step is zero"), std::string::npos) << zero.why;
}

TEST(CompareRuns, ADifferenceWithoutACauseAsksWhetherTheScriptRepeatsItself) {
  const std::vector<ObservedRun> runs = {observed({16, 1, 1}), observed({4, 4, 1}, 1.01)};
  EXPECT_TRUE(compare_runs(runs).needs_repeat);
  const ObservedRun again = observed({16, 1, 1}), other = observed({16, 1, 1}, 0.99);
  EXPECT_EQ(compare_runs(runs, &again).verdict, Equivalent::Different);
  EXPECT_EQ(compare_runs(runs, &other).verdict, Equivalent::CannotTell);
  EXPECT_FALSE(compare_runs(runs, &other).needs_repeat);
}

TEST(CompareRuns, OtherExamplesCannotBeCompared) {
  ObservedRun run = observed({4, 4, 1}, 1.2);
  evidence(run, 0).data = "77";
  const ObservedRun again = observed({16, 1, 1});
  const SplitComparison order = compared(run, again, &again);
  EXPECT_EQ(order.verdict, Equivalent::CannotTell);
  EXPECT_NE(order.why.find("depends on the micro-batch size"), std::string::npos);
  // A factor of 4 stands out all the same.
  ObservedRun undivided = observed({4, 4, 1}, 4.4);
  evidence(undivided, 0).data = "77";
  EXPECT_EQ(compared(undivided).kind, "no_division");
}

TEST(CompareRuns, WhatTheHookSawInsideAWindowIsNamed) {
  ObservedRun run = observed({4, 4, 1});
  evidence(run, 0).micro_steps[2].gradient_before = 0;
  EXPECT_EQ(compared(run).kind, "zero_grad_in_window");
  run = observed({4, 4, 1});
  evidence(run, 1).micro_steps[0].gradient_before = 0.5;
  EXPECT_EQ(compared(run).kind, "missing_zero_grad");
  run = observed({4, 4, 1});
  evidence(run, 0).clippings = 4;
  EXPECT_EQ(compared(run).kind, "clip_per_micro_step");
  run = observed({4, 4, 1});
  auto& window = evidence(run, 1).micro_steps;
  window.insert(window.begin(), {0.2, 0.0, 0.5, 4, 4});
  EXPECT_EQ(compared(run).kind, "tail_dropped");
  run = observed({4, 4, 1});
  evidence(run, 2).micro_steps.push_back(evidence(run, 2).micro_steps.back());
  EXPECT_EQ(compared(run).kind, "tail_leak");
  run = observed({4, 4, 1});
  for (std::size_t i = 1; i < 3; ++i) evidence(run, i).scheduler_steps = 4;
  EXPECT_EQ(compared(run).kind, "sched_per_micro_step");
}

TEST(CompareRuns, AMeanOfMeansIsProvedByWeighting) {
  // Losses 1, 1, 1, 2 over 1, 1, 1, 5 labels: the mean of means is 1.25, the mean over labels 1.625.
  ObservedRun run = observed({4, 4, 1}, 1, 1), reference = observed({16, 1, 1}, 1.625, 1);
  for (std::size_t k = 0; k < 4; ++k) {
    evidence(run, 0).micro_steps[k].loss = k == 3 ? 0.5 : 0.25;
    evidence(run, 0).micro_steps[k].labels = k == 3 ? 5 : 1;
  }
  EXPECT_EQ(compared(run, reference).kind, "token_mean_of_means");
  evidence(run, 0).micro_steps[3].labels = 6;
  EXPECT_EQ(compared(run, reference).kind, "");
}

TEST(CompareRuns, RanksCountTogether) {
  ObservedRun run = observed({4, 2, 2}), reference = observed({8, 1, 2});
  for (ObservedRun* both : {&run, &reference}) {
    for (auto& ranks : both->steps) ranks[1] = ranks[0];
  }
  EXPECT_EQ(compared(run, reference).verdict, Equivalent::Same);
}

TEST(CompareRuns, AFailedRunCannotTell) {
  ObservedRun failed;
  failed.split = {4, 4, 1};
  failed.outcome = run::Outcome::Crashed;
  failed.reason = "exited with code 3";
  EXPECT_EQ(compared(failed).verdict, Equivalent::CannotTell);
  EXPECT_NE(compared(failed).why.find("exited with code 3"), std::string::npos);
  EXPECT_EQ(compare_runs(std::vector<ObservedRun>{failed}).verdict, Equivalent::CannotTell);
}

TEST(Evidence, TravelsOverTheProtocol) {
  ObservedRun run = observed({4, 4, 1});
  StepReport report = run.steps[1].at(0);
  report.step = 2;
  report.enqueue = {{"forward", 0.25}};
  report.evidence->trainer = "transformers 5.24.0 Trainer";
  const auto back = std::get<StepReport>(run::parse_message(run::to_line(report)));
  EXPECT_EQ(run::to_line(back), run::to_line(report));
  EXPECT_EQ(back.evidence->trainer, "transformers 5.24.0 Trainer");
  EXPECT_EQ(back.enqueue.at("forward"), 0.25);
}

}  // namespace
}  // namespace batchwright::tune
