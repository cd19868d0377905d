#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "run/script_runner.h"

namespace batchwright::cli {
namespace {

// The examples of docs/your-script.md, each for a few steps at one split, as a trial runs them.
class Example : public ::testing::Test {
 protected:
  static bool imports(const std::string& modules) {
    ProcessOptions options;
    options.command = {python_for_tests(), "-c", "import " + modules};
    return run_captured(options, std::chrono::seconds(120)).status.succeeded();
  }
  run::Trial trial(const run::Split& split, std::vector<std::string> words) {
    run::ScriptSettings settings;
    words.insert(words.begin(), python_for_tests());
    settings.script.words = std::move(words);
    settings.scratch_root = program.folder / "scratch";
    settings.log_file = program.folder / "worker.log";
    settings.hook_folder = source_folder() + "/python/batchwright/hook";
    run::TrialRequest request;
    request.split = split;
    request.warmup_steps = 1;
    request.steps = 2;
    run::Trial result = run::ScriptRunner(settings, nullptr).run(request);
    EXPECT_EQ(result.outcome, run::Outcome::Measured) << result.reason;
    EXPECT_EQ(result.observed_micro_batch, split.micro_batch);
    EXPECT_EQ(result.observed_accumulation_steps, split.accumulation_steps);
    EXPECT_GT(result.phases["backward"], 0);
    EXPECT_TRUE(std::filesystem::is_empty(settings.scratch_root));
    return result;
  }
  const std::string folder = source_folder() + "/examples/";
  const Program program;
};

TEST_F(Example, PlainLoop) {
  if (!imports("torch")) GTEST_SKIP() << "no torch";
  trial({8, 4, 1}, {folder + "plain_loop.py", "--batch_size", "{micro}", "--accum_steps", "{accum}"});
}

TEST_F(Example, TransformersTrainerWithPeft) {
  if (!imports("transformers, peft, accelerate")) GTEST_SKIP() << "no Transformers with PEFT";
  if (Program::model_folder().empty()) GTEST_SKIP() << "no MiniLM";
  const run::Trial result =
      trial({4, 2, 1}, {folder + "transformers_trainer.py", Program::model_folder(), "--lora", "8",
                        "--per_device_train_batch_size", "{micro}", "--gradient_accumulation_steps",
                        "{accum}", "--output_dir", "{scratch}"});
  ASSERT_FALSE(result.steps.empty());
  EXPECT_GT(result.steps[0].tokens, 0);
  EXPECT_LT(result.steps[0].tokens, result.steps[0].padded_tokens);
}

TEST_F(Example, AccelerateLoop) {
  if (!imports("accelerate")) GTEST_SKIP() << "no Accelerate";
  trial({8, 4, 1}, {folder + "accelerate_loop.py", "--batch_size", "{micro}", "--accum_steps", "{accum}"});
}

TEST_F(Example, LightningModule) {
  if (!imports("lightning")) GTEST_SKIP() << "no Lightning";
  trial({8, 4, 1}, {folder + "lightning_module.py", "--batch_size", "{micro}", "--accum", "{accum}",
                    "--default_root_dir", "{scratch}"});
}

TEST_F(Example, TwoProcessesUnderTorchrun) {
  if (!imports("torch.distributed.run")) GTEST_SKIP() << "no torch.distributed";
  trial({8, 4, 2}, {"-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2",
                    folder + "torchrun_ddp.py", "--batch_size", "{micro}", "--accum_steps", "{accum}"});
}

}  // namespace
}  // namespace batchwright::cli
