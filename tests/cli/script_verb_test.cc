#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "paths.h"

namespace batchwright::cli {
namespace {

// A script without torch that takes 4 ms a micro-step. A busy machine may hide that in the noise of two
// starts, so the tests look at what is written, not at which split wins.
const char* kScript = "import sys, time; time.sleep(0.02 + 0.004 * int(sys.argv[2]) * int(sys.argv[3]))";

std::vector<std::string> tune(std::vector<std::string> before, const std::vector<std::string>& command) {
  std::vector<std::string> words = {"tune", "--effective-batch", "8", "--run", "run"};
  words.insert(words.end(), before.begin(), before.end());
  words.push_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

TEST(ScriptVerb, RunsAScriptAtTwoLengthsAndAnswersAgainFromTheFolder) {
  const Program program;
  const CapturedOutput output = program.run(
      tune({"--steps-arg", "{steps}"}, {python_for_tests(), "-c", kScript, "{micro}", "{accum}"}));
  EXPECT_NE(output.text.find("Run folder: run"), std::string::npos) << output.text;
  const Json result = program.result();  // kept: a range-for over part of a temporary outlives it
  for (const Json& trial : result.at("trials")) {
    EXPECT_NE(trial.at("outcome"), "crashed") << output.text;
    EXPECT_NE(trial.at("outcome"), "out_of_memory") << output.text;
  }
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run" / "scratch"));
  // The same question again is answered from the folder.
  const std::size_t trials = program.lines_in("run/trials.jsonl");
  program.run(tune({"--steps-arg", "{steps}"}, {python_for_tests(), "-c", kScript, "{micro}", "{accum}"}));
  EXPECT_EQ(program.lines_in("run/trials.jsonl"), trials);
}

// 100 MB an example under 500 MB: the peaks of 2x4 and 4x2 say that 8x1 needs more, so it is never started.
TEST(ScriptVerb, ALimitSparesWhatSurelyDoesNotFit) {
  const Program program;
  const std::string script =
      std::string("import sys; held = b'x' * (int(sys.argv[1]) * 10**8); del sys.argv[1]\n") +
      "import time; time.sleep(0.02 * int(sys.argv[1]) * int(sys.argv[2]))";
  const CapturedOutput output = program.run(tune({"--steps-arg", "{steps}", "--memory-limit", "500MB"},
                                                 {python_for_tests(), "-c", script, "{micro}", "{accum}"}));
  const Json result = program.result();
  for (const Json& trial : result.at("trials"))
    EXPECT_NE(trial.at("outcome"), "out_of_memory") << output.text;
  EXPECT_EQ(result.at("trials").at(0).at("outcome"), "not_tried");
  EXPECT_NE(result.at("trials").at(0).at("why_dropped").get<std::string>().find("is predicted to need"),
            std::string::npos)
      << output.text;
}

// Killed in the middle of a trial: what it left lying is gone once the same command has continued.
TEST(ScriptVerb, AKilledTunerLeavesNothingForLong) {
  const Program program;
  const std::filesystem::path temporary = program.folder / "t", seen = program.folder / "seen";
  std::filesystem::create_directory(temporary);
  const char* script =  // the first run of all sleeps until it is ended
      "import os, sys, time\n"
      "first = not os.path.exists('seen')\n"
      "open('seen', 'w').close()\n"
      "time.sleep(100 if first else 0.02 + 0.004 * int(sys.argv[2]) * int(sys.argv[3]))";
  ProcessOptions options = program.command(
      tune({"--steps-arg", "{steps}"}, {python_for_tests(), "-c", script, "{micro}", "{accum}"}));
  options.environment["TMPDIR"] = temporary.string();
  {
    ChildProcess tuner = ChildProcess::start(options);
    for (int i = 0; i < 6000 && !std::filesystem::exists(seen); ++i) ::usleep(5000);
    ASSERT_TRUE(std::filesystem::exists(seen));
    ::kill(tuner.process_id(), SIGKILL);
    ASSERT_TRUE(tuner.wait(std::chrono::seconds(60)));
  }
  EXPECT_TRUE(std::filesystem::exists(program.folder / "run" / "scratch" / "trial-1"));
  EXPECT_FALSE(std::filesystem::is_empty(temporary));
  for (const auto& left : std::filesystem::directory_iterator(temporary)) {
    std::filesystem::last_write_time(left.path(),
                                     std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const CapturedOutput again = run_captured(options, std::chrono::seconds(120));
  EXPECT_TRUE(std::filesystem::is_empty(temporary)) << again.text;
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run" / "scratch")) << again.text;
}

TEST(ScriptVerb, RefusesWhatWouldBeWrongBeforeItRunsAnything) {
  const Program program;
  write_file_atomic(program.folder / "out" / "checkpoint.bin", "a week of work");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {tune({}, {}), "needs a command after it"},
      {tune({}, {"python", "train.py"}), "no {micro}"},
      {tune({}, {"no-such-program", "{micro}"}), "is not a program in PATH"},
      {tune({}, {"python3", "x.py", "{micro}", "--output_dir", "out"}), "Write --output_dir {scratch}"},
      {tune({"--lora", "16"}, {"python3", "x.py", "{micro}"}), "--lora: is for MODEL DATA"},
      {tune({"--set-in", "absent.yaml", "a={micro}"}, {"python3", "x.py", "absent.yaml"}), "absent.yaml"},
      {tune({"--set-in", "absent.yaml", "a"}, {"python3", "x.py", "{micro}"}), "is not KEY=VALUE"},
      {tune({"--devices", "3"}, {"python3", "x.py", "{micro}"}), "8 cannot be divided over 3 devices"},
      {{"tune", Program::model_folder(), program.data(), "--effective-batch", "8", "--steps-arg", "x"},
       "--steps-arg: is for a command of yours"}};
  for (const auto& [words, message] : cases) {
    const CapturedOutput output = program.run(words);
    EXPECT_EQ(output.status.code, 2) << output.text;
    EXPECT_NE(output.text.find(message), std::string::npos) << message << " in\n" << output.text;
    EXPECT_FALSE(std::filesystem::exists(program.folder / "run")) << message;
  }
}

}  // namespace
}  // namespace batchwright::cli
