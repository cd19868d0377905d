#include "run/script_runner.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "base/process.h"
#include "paths.h"
#include "run/test_worker.h"

namespace batchwright::run {
namespace {

// Empty where it was not built.
std::filesystem::path hook_recorder() {
  const std::filesystem::path file =
      std::filesystem::path(programs_folder()).parent_path() / "lib/batchwright/batchwright_recorder.abi3.so";
  return std::filesystem::exists(file) ? file : std::filesystem::path();
}

// Trials of a real script.
class ScriptTrials : public WithTorch {
 protected:
  ScriptSettings settings(std::vector<std::string> more = {}) {
    ScriptSettings result;
    result.script.words = {python_for_tests(), source_folder() + "/tests/run/train_script.py", "{micro}",
                           "{accum}"};
    for (std::string& word : more) result.script.words.push_back(std::move(word));
    result.scratch_root = folder / "scratch";
    result.log_file = folder / "worker.log";
    result.hook_folder = source_folder() + "/python/batchwright/hook";
    result.hook_recorder = hook_recorder();
    return result;
  }
  TrialRequest request(std::int64_t micro, std::int64_t accum) {
    TrialRequest result;
    result.split = {micro, accum, 1};
    result.warmup_steps = 1;
    result.steps = 4;
    return result;
  }
  TemporaryFolder folder;
};

TEST_F(ScriptTrials, TheHookSeesStepsMicroStepsExamplesAndTokens) {
  ScriptRunner runner(settings(), nullptr);
  const Trial trial = runner.run(request(4, 3));
  ASSERT_EQ(trial.outcome, Outcome::Measured) << trial.reason;
  EXPECT_EQ(trial.observed_micro_batch, 4);
  EXPECT_EQ(trial.observed_accumulation_steps, 3);
  ASSERT_EQ(trial.steps.size(), 4u);
  EXPECT_EQ(trial.steps[0].tokens, 4 * 3 * 16);
  EXPECT_GT(trial.phases.at("forward"), 0);
  EXPECT_GT(trial.phases.at("backward"), 0);
  EXPECT_GT(trial.phases.at("optimizer"), 0);
  EXPECT_GT(trial.peak_bytes.value_or(0), 1 << 20);
  EXPECT_EQ(runner.hello()->framework.substr(0, 6), "torch ");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "scratch"));  // every trial's folder is gone
}

TEST_F(ScriptTrials, ASplitThatTheScriptIgnoresIsRejected) {
  ScriptRunner runner(settings({"--ignore-accum"}), nullptr);
  const Trial trial = runner.run(request(4, 3));
  EXPECT_EQ(trial.outcome, Outcome::Rejected);
  EXPECT_NE(trial.reason.find("asked for 4x3"), std::string::npos) << trial.reason;
  EXPECT_EQ(trial.observed_accumulation_steps, 1);
}

TEST_F(ScriptTrials, OutOfMemoryIsReadFromTheTraceback) {
  ScriptRunner runner(settings({"--oom", "8"}), nullptr);
  EXPECT_EQ(runner.run(request(8, 1)).outcome, Outcome::OutOfMemory);
  EXPECT_EQ(runner.run(request(4, 2)).outcome, Outcome::Measured);
}

TEST_F(ScriptTrials, AScriptThatEndsTooEarlyIsRejectedAndOneWithoutTorchNamed) {
  ScriptRunner runner(settings({"--steps", "2"}), nullptr);
  const Trial trial = runner.run(request(4, 1));
  EXPECT_EQ(trial.outcome, Outcome::Rejected);
  EXPECT_EQ(trial.reason, "ended after 2 of the 5 optimizer steps that a trial needs");
  ScriptSettings plain = settings();
  plain.script.words = {"/bin/sh", "-c", "true {micro}"};
  try {
    ScriptRunner(plain, nullptr).run(request(4, 1));
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.hint().find("--steps-arg"), std::string::npos);
  }
}

// Each way to train: the steps are seen as they are, and the losses are bit for bit those without the hook.
class WaysToTrain : public ScriptTrials, public ::testing::WithParamInterface<const char*> {
 protected:
  enum class Hook { None, Python, Recorder };
  std::string losses(Hook hook) {
    ProcessOptions options;
    options.command = {
        python_for_tests(),          source_folder() + "/tests/run/hook_cases.py", GetParam(), "8", "3",
        (folder / "losses").string()};
    const Listener listener;
    if (hook != Hook::None) {
      options.environment = {{"PYTHONPATH", source_folder() + "/python/batchwright/hook"},
                             {"BATCHWRIGHT_SOCKET", listener.socket_path().string()}};
    }
    if (hook == Hook::Recorder) options.environment["BATCHWRIGHT_RECORDER"] = hook_recorder().string();
    const CapturedOutput output = run_captured(options, std::chrono::seconds(120));
    EXPECT_TRUE(output.status.succeeded()) << output.text;
    return read_file(folder / "losses");
  }
};
TEST_P(WaysToTrain, AreSeenAndLeftAlone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what runs here is Python, which is not instrumented";
#endif
  const std::string bare = losses(Hook::None);
  EXPECT_EQ(losses(Hook::Python), bare);
  if (!hook_recorder().empty()) {
    EXPECT_EQ(losses(Hook::Recorder), bare);
  }
  ScriptSettings with = settings();
  with.script.words = {python_for_tests(), source_folder() + "/tests/run/hook_cases.py",
                       GetParam(),         "{micro}",
                       "{accum}",          (folder / "losses").string()};
  ScriptRunner runner(with, nullptr);
  const Trial trial = runner.run(request(8, 3));
  ASSERT_EQ(trial.outcome, Outcome::Measured) << trial.reason;
  EXPECT_EQ(trial.observed_micro_batch, 8);
  EXPECT_EQ(trial.observed_accumulation_steps, 3);
  double parts = 0, seconds = 0;
  for (const TimedStep& step : trial.steps) seconds += step.seconds / static_cast<double>(trial.steps.size());
  for (const auto& [name, part] : trial.phases) parts += part;
  EXPECT_NEAR(parts, seconds, 1e-6 + 0.02 * seconds);  // the phases are the step
  EXPECT_GT(trial.phases.at("forward"), 0);
  EXPECT_GT(trial.phases.at("backward"), 0);
  EXPECT_GT(trial.phases.at("optimizer"), 0);
  EXPECT_GT(trial.phases.at("input"), 0);
}
INSTANTIATE_TEST_SUITE_P(Hook, WaysToTrain,
                         ::testing::Values("plain", "two_optimizers", "scaler", "compile", "checkpointing",
                                           "checkpointing_reentrant", "workers", "closure", "average",
                                           "compile_in_place", "scaler_skips", "two_calls", "nested",
                                           "compile_function", "compile_later"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// batchwright.step() and the callbacks: beside what the hook sees, and where it sees nothing.
class MarkedSteps : public ScriptTrials, public ::testing::WithParamInterface<const char*> {};
TEST_P(MarkedSteps, AreThoseOfTheScript) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "what runs here is Python, which is not instrumented";
#endif
  const std::string script = GetParam();
  const std::string framework = script.substr(0, script.find('_'));
  if (script.ends_with("_callback")) {
    ProcessOptions options;
    options.command = {python_for_tests(), "-c", "import accelerate, " + framework};
    if (!run_captured(options, std::chrono::seconds(120)).status.succeeded())
      GTEST_SKIP() << "no " << framework;
  }
  ScriptSettings with = settings();
  with.script.words = {
      python_for_tests(), source_folder() + "/tests/run/marked_steps.py", script, "{micro}", "{accum}",
      "{scratch}"};
  ScriptRunner runner(with, nullptr);
  const Trial trial = runner.run(request(4, 3));
  ASSERT_EQ(trial.outcome, Outcome::Measured) << trial.reason << read_file(with.log_file);
  EXPECT_EQ(trial.steps.size(), 4u);
  EXPECT_EQ(trial.observed_micro_batch, 4);
  EXPECT_EQ(trial.observed_accumulation_steps, 3);
  for (const TimedStep& step : trial.steps) EXPECT_GT(step.seconds, 0);
}
INSTANTIATE_TEST_SUITE_P(Hook, MarkedSteps,
                         ::testing::Values("without_torch", "own_optimizer", "optimizers_in_turn",
                                           "transformers_callback", "lightning_callback"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST_F(ScriptTrials, TheTunerGoneIsNoReasonToFail) {
  ProcessOptions options;
  options.command = {
      python_for_tests(), source_folder() + "/tests/run/train_script.py", "4", "3", "--steps", "5"};
  options.environment = {{"PYTHONPATH", source_folder() + "/python/batchwright/hook"},
                         {"BATCHWRIGHT_SOCKET", (folder / "nobody").string()}};
  EXPECT_TRUE(run_captured(options, std::chrono::seconds(120)).status.succeeded());
}

// Libraries look for torch before they import it; the hook must be there all the same.
TEST_F(ScriptTrials, TorchLookedForBeforeItIsImportedIsHooked) {
  ScriptSettings with = settings();
  with.script.words = {python_for_tests(),
                       "-c",
                       "import importlib.util, runpy, sys; importlib.util.find_spec('torch');"
                       "sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')",
                       source_folder() + "/tests/run/train_script.py",
                       "{micro}",
                       "{accum}"};
  EXPECT_EQ(ScriptRunner(with, nullptr).run(request(4, 3)).outcome, Outcome::Measured);
}

// Without torch and without a hook: the script sleeps a fixed time at start and a time per step.
TEST_F(ScriptTrials, TwoLengthsGiveTheTimeOfAStep) {
  ScriptSettings plain = settings();
  plain.script.words = {python_for_tests(), "-c",
                        "import sys, time; time.sleep(0.2 + 0.05 * int(sys.argv[2]))", "{micro}"};
  plain.script.steps_argument = "{steps}";
  plain.hook_folder.clear();
  ScriptRunner runner(plain, nullptr);
  const Trial trial = runner.run(request(4, 1));
  // On a busy machine the noise of two starts can exceed the steps: then it says so instead of a number.
  if (trial.outcome == Outcome::Measured) {
    EXPECT_GT(trial.steps.at(0).seconds, 0);
  } else {
    EXPECT_EQ(trial.outcome, Outcome::Rejected) << trial.reason;
    EXPECT_NE(trial.reason.find("the steps do not show in the time"), std::string::npos) << trial.reason;
  }
  plain.script.words = {"/bin/sh", "-c", "exit 3", "{micro}"};
  EXPECT_EQ(ScriptRunner(plain, nullptr).run(request(4, 1)).outcome, Outcome::Crashed);
}

}  // namespace
}  // namespace batchwright::run
