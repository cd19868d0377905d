#include "run/trial_runner.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <string>

#include "base/error.h"
#include "run/test_worker.h"

namespace batchwright::run {
namespace {

// Short enough that a hang costs the test a second, long enough for a Python to start on a busy machine.
Patience short_patience() { return {20, 20, 1, 10}; }

TrialRequest request(std::int64_t micro, std::int64_t accum) {
  TrialRequest result;
  result.split = {micro, accum, 1};
  result.steps = 3;
  result.warmup_steps = 1;
  result.first_step = 10;
  return result;
}

struct Runner {
  explicit Runner(const Json& plan, Patience patience = short_patience())
      : trials(worker_command(folder, plan), nullptr, {}, patience) {}
  TemporaryFolder folder;
  TrialRunner trials;

  Runner(const Runner&) = delete;
};

TEST(TrialRunner, OneWorkerServesManySplits) {
  Runner runner(Json::object());
  const Trial first = runner.trials.run(request(8, 4));
  const pid_t worker = runner.trials.worker_process_id();
  EXPECT_EQ(first.outcome, Outcome::Measured) << first.reason;
  ASSERT_EQ(first.steps.size(), 3u);
  EXPECT_EQ(first.steps[0].window, 11);  // the warm-up step took window 10
  EXPECT_NEAR(first.steps[0].seconds, 4 * (0.002 + 0.004), 1e-9);
  EXPECT_EQ(first.steps[0].tokens, 320);
  EXPECT_NEAR(first.phases.at("forward"), 4 * (0.002 + 0.004) / 3, 1e-9);
  EXPECT_EQ(first.peak_bytes, 180);
  EXPECT_EQ(first.observed_micro_batch, 8);
  EXPECT_GT(first.startup_seconds, 0);
  EXPECT_EQ(runner.trials.hello()->framework, "test worker");
  const Trial second = runner.trials.run(request(4, 8));
  EXPECT_EQ(second.outcome, Outcome::Measured);
  EXPECT_EQ(second.startup_seconds, 0);
  EXPECT_EQ(runner.trials.worker_process_id(), worker);
}

TEST(TrialRunner, OutOfMemoryLeavesTheWorkerAlive) {
  Runner runner(Json{{"limit_bytes", 150}});
  const Trial failed = runner.trials.run(request(8, 4));
  const pid_t worker = runner.trials.worker_process_id();
  EXPECT_EQ(failed.outcome, Outcome::OutOfMemory);
  EXPECT_EQ(failed.reason, "needs 180 bytes");
  EXPECT_EQ(failed.peak_bytes, 150);
  EXPECT_EQ(runner.trials.run(request(4, 8)).outcome, Outcome::Measured);
  EXPECT_EQ(runner.trials.worker_process_id(), worker);
}

// Each kind of death: the trial is classified, and the next one runs in a new worker.
void expect_recovery(const std::string& how, Outcome outcome, const std::string& reason) {
  Runner runner(Json{{"at", {{"8", how}}}});
  const Trial failed = runner.trials.run(request(8, 4));
  EXPECT_EQ(failed.outcome, outcome) << how << ": " << failed.reason;
  EXPECT_NE(failed.reason.find(reason), std::string::npos) << how << ": " << failed.reason;
  const Trial next = runner.trials.run(request(4, 8));
  EXPECT_EQ(next.outcome, Outcome::Measured) << how << ": " << next.reason;
}

TEST(TrialRunner, AKilledWorkerCostsItsTrialOnly) { expect_recovery("kill", Outcome::Crashed, "SIGKILL"); }

TEST(TrialRunner, ASegfaultIsNamed) { expect_recovery("segfault", Outcome::Crashed, "SIGSEGV"); }

TEST(TrialRunner, ATracebackShowsItsLastLine) {
  expect_recovery("traceback", Outcome::Crashed, "ValueError: the data is odd");
}

TEST(TrialRunner, GarbageIsNotTrusted) { expect_recovery("garbage", Outcome::Crashed, "not the protocol"); }

TEST(TrialRunner, ALineWithoutAnEndIsBounded) {
  expect_recovery("flood", Outcome::Crashed, "without a newline");
}

TEST(TrialRunner, AnAllocatorsMessageIsOutOfMemory) {
  expect_recovery("cuda", Outcome::OutOfMemory, "Tried to allocate 2.00 GiB");
}

TEST(TrialRunner, AHangIsTimedOutAndItsWorkerEnded) {
  Runner runner(Json{{"at", {{"8", "hang"}}}});
  EXPECT_EQ(runner.trials.run(request(4, 8)).outcome, Outcome::Measured);  // now a speed is known
  const pid_t worker = runner.trials.worker_process_id();
  const Trial hung = runner.trials.run(request(8, 4));
  EXPECT_EQ(hung.outcome, Outcome::TimedOut);
  EXPECT_EQ(hung.reason, "no sign of life for 1.00 s");
  EXPECT_FALSE(is_running(worker));
  EXPECT_EQ(runner.trials.run(request(2, 16)).outcome, Outcome::Measured);
}

TEST(TrialRunner, AGrandchildInAnotherSessionEndsWithItsWorker) {
  TemporaryFolder notes;
  Runner runner(Json{{"at", {{"8", "grandchild"}}}, {"left", (notes / "left").string()}});
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Crashed);
  EXPECT_FALSE(is_running(std::stoi(read_file(notes / "left"))));
}

TEST(TrialRunner, ASplitThatWasIgnoredIsRejected) {
  Runner runner(Json{{"ignores_accumulation", true}});
  const Trial trial = runner.trials.run(request(8, 4));
  EXPECT_EQ(trial.outcome, Outcome::Rejected);
  EXPECT_EQ(trial.observed_accumulation_steps, 1);
  EXPECT_NE(trial.reason.find("asked for 8x4"), std::string::npos) << trial.reason;
  EXPECT_EQ(runner.trials.run(request(8, 1)).outcome, Outcome::Measured);
}

TEST(TrialRunner, AWorkerKilledBetweenTrialsIsReplaced) {
  Runner runner(Json::object());
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Measured);
  const pid_t worker = runner.trials.worker_process_id();
  ::kill(worker, SIGKILL);
  while (is_running(worker)) ::usleep(1000);
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Crashed);
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Measured);
}

Error error_of_start(const Json& plan, Patience patience = short_patience()) {
  Runner runner(plan, patience);
  try {
    for (int attempt = 0; attempt < 3; ++attempt) runner.trials.run(request(8, 4));
  } catch (const Error& e) {
    return e;
  }
  return Error(ErrorKind::Usage, "nothing", "was thrown");
}

TEST(TrialRunner, AnotherProtocolVersionIsNamed) {
  const Error error = error_of_start({{"protocol", 7}});
  EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
  EXPECT_NE(error.message().find("version 7"), std::string::npos);
}

TEST(TrialRunner, AnInputThatTheEngineRefusesIsTheUsersToMend) {
  const Error error = error_of_start({{"start", "exit2"}});
  EXPECT_EQ(error.kind(), ErrorKind::InvalidInput);
  EXPECT_STREQ(error.what(), "model.safetensors: is truncated");
}

TEST(TrialRunner, AWorkerThatNeverStartsEndsTheRun) {
  for (const char* how : {"kill", "step_first"}) {
    const Error error = error_of_start({{"start", how}});
    EXPECT_EQ(error.kind(), ErrorKind::Internal) << how;
    EXPECT_NE(error.message().find("failed to start 2 times"), std::string::npos) << error.what();
  }
  const Error silent = error_of_start({{"start", "silent"}}, {0.5, 20, 1, 10});
  EXPECT_NE(silent.message().find("no sign of life"), std::string::npos) << silent.what();
}

TEST(TrialRunner, OneFailedStartIsForgiven) {
  TemporaryFolder notes;
  Runner runner(Json{{"start", "kill"}, {"once", (notes / "once").string()}});
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Crashed);
  EXPECT_EQ(runner.trials.run(request(8, 4)).outcome, Outcome::Measured);
}

TEST(TrialRunner, AnInterruptStopsARunningTrial) {
  const TemporaryFolder folder;
  const InterruptGuard guard;
  pid_t worker = -1;
  {
    TrialRunner trials(worker_command(folder, {{"at", {{"8", "hang"}}}}), &guard, {}, short_patience());
    trials.run(request(4, 8));
    worker = trials.worker_process_id();
    ::raise(SIGTERM);
    EXPECT_THROW(trials.run(request(8, 4)), Error);
  }
  EXPECT_FALSE(is_running(worker));
}

}  // namespace
}  // namespace batchwright::run
