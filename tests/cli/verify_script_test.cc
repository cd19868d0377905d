#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <vector>

#include "cli/program.h"

namespace batchwright::cli {
namespace {

const std::string kTests = source_folder() + "/tests/run/";

bool imports(const std::string& python, const std::string& module) {
  ProcessOptions options;
  options.command = {python, "-c", "import " + module};
  return run_captured(options, std::chrono::seconds(120)).status.succeeded();
}

// Runs `batchwright verify --json -- COMMAND` and returns its document; the exit code must fit the verdict.
Json verify(const Program& program, std::vector<std::string> before,
            const std::vector<std::string>& command) {
  std::vector<std::string> words = {"verify", "--effective-batch", "16", "--run", "run", "--json"};
  words.insert(words.end(), before.begin(), before.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  const CapturedOutput output = program.run(words);
  const Json result = program.result();
  EXPECT_EQ(output.status.code, result.at("verdict") == "same" ? 0 : 1) << output.text;
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run" / "scratch"));
  return result;
}

std::string sentence(const Json& result) {
  std::string text;
  for (const Json& split : result.at("splits")) text += split.at("why").get<std::string>() + "\n";
  return text;
}

class Planted : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "what runs here is Python, which is not instrumented";
#endif
    if (!imports(python_for_tests(), "torch")) GTEST_SKIP() << "no torch in " << python_for_tests();
  }
  const Program program;
};

// Six steps: two epochs of two whole windows and a partial one.
using InALoop = Planted;
TEST_P(InALoop, IsFoundAndNamed) {
  const std::string mistake = GetParam();
  const Json result =
      verify(program, {"--split", "4x4", "--steps", "6"},
             {python_for_tests(), kTests + "accumulation_loop.py", "{micro}", "{accum}", mistake});
  const Json& cut = result.at("splits").at(1);
  if (mistake == "none") {
    EXPECT_EQ(result.at("verdict"), "same") << sentence(result);
  } else if (mistake == "random_data" || mistake == "order_of_data") {
    EXPECT_EQ(result.at("verdict"), "cannot_tell") << sentence(result);
    const char* expected = mistake == "random_data" ? "without a seed" : "depends on the micro-batch size";
    EXPECT_NE(sentence(result).find(expected), std::string::npos) << sentence(result);
  } else {
    EXPECT_EQ(result.at("verdict"), "different") << sentence(result);
    EXPECT_EQ(cut.at("kind"), mistake) << sentence(result);
    EXPECT_TRUE(cut.at("fix").is_string());
  }
  if (mistake == "no_division" || mistake == "double_division") {
    EXPECT_NEAR(cut.at("factor").get<double>(), mistake == "no_division" ? 4 : 0.25, 0.01);
  }
}
INSTANTIATE_TEST_SUITE_P(VerifyScript, InALoop,
                         ::testing::Values("none", "no_division", "double_division", "token_mean_of_means",
                                           "sched_per_micro_step", "sched_units", "zero_grad_in_window",
                                           "missing_zero_grad", "clip_per_micro_step", "apply_inside_loop",
                                           "off_by_one_boundary", "tail_leak", "tail_full_divisor",
                                           "tail_dropped", "not_equivalent_by_nature", "random_data",
                                           "order_of_data"),
                         [](const auto& parameter) { return std::string(parameter.param); });

using InATrainer = Planted;
TEST_P(InATrainer, IsFoundAndNamed) {
  if (!imports(python_for_tests(), "transformers, accelerate"))
    GTEST_SKIP() << "no Transformers with Accelerate";
  const std::string mistake = GetParam();
  const Json result = verify(
      program, {"--split", "4x4", "--steps", "3"},
      {python_for_tests(), kTests + "accumulation_trainer.py", "{micro}", "{accum}", "{scratch}", mistake});
  EXPECT_EQ(result.at("verdict"), mistake == "none" ? "same" : "different") << sentence(result);
  if (mistake != "none") {
    EXPECT_EQ(result.at("splits").at(1).at("kind"), mistake) << sentence(result);
  }
}
INSTANTIATE_TEST_SUITE_P(VerifyScript, InATrainer,
                         ::testing::Values("none", "custom_loss_bypass", "double_division",
                                           "zero_grad_in_window", "sched_per_micro_step"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(VerifyScriptVerb, RefusesWhatItCannotUse) {
  const Program program;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"verify", "--effective-batch", "8", "--lora", "4", "--", "python3", "{micro}"},
       "--lora: is for MODEL DATA"},
      {{"verify", "--effective-batch", "8", "--", "python3", "x.py"}, "no {micro}"},
      {{"verify", "--effective-batch", "8", "--split", "3x3", "--", "python3", "{micro}"},
       "makes 9 examples"},
      {{"verify", "m", "d", "--effective-batch", "8", "--keep-dropout"}, "--keep-dropout: is for a command"}};
  for (const auto& [words, message] : cases) {
    const CapturedOutput output = program.run(words);
    EXPECT_EQ(output.status.code, 2) << output.text;
    EXPECT_NE(output.text.find(message), std::string::npos) << message << " in\n" << output.text;
  }
}

// The release of Transformers in which the Trainer leaves the loss of a sequence classifier undivided. Its
// environment is made by `scripts/bench verify`, and named by this variable.
TEST(VerifyScriptVerb, FindsTheUndividedLossOfTransformers524) {
  const char* python = ::getenv("BATCHWRIGHT_TRANSFORMERS_5_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "BATCHWRIGHT_TRANSFORMERS_5_PYTHON names no Python";
  if (Program::model_folder().empty()) GTEST_SKIP() << "no MiniLM";
  const Program program;
  const auto run = [&](const std::string& interpreter) {
    return verify(program, {"--split", "4x4", "--steps", "1", "--overwrite"},
                  {interpreter, source_folder() + "/examples/transformers_trainer.py",
                   Program::model_folder(), "--per_device_train_batch_size", "{micro}",
                   "--gradient_accumulation_steps", "{accum}", "--output_dir", "{scratch}"});
  };
  const Json result = run(python);
  EXPECT_EQ(result.at("splits").at(1).at("kind"), "no_division") << sentence(result);
  EXPECT_NEAR(result.at("splits").at(1).at("factor").get<double>(), 4, 0.01);
  EXPECT_NE(sentence(result).find("Trainer"), std::string::npos);
  EXPECT_EQ(run(python_for_tests()).at("verdict"), "same");
}

}  // namespace
}  // namespace batchwright::cli
