#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "cli/program.h"
#include "paths.h"

namespace batchwright::cli {
namespace {

class TuneVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program::model_folder().empty()) GTEST_SKIP() << "no model package in " << python_for_tests();
  }
  // Starts it, sends `signal` once `trials` are on disk, and returns how it ended.
  ExitStatus signal_after(std::size_t trials, int signal) {
    ChildProcess child = ChildProcess::start(program.command(program.tune()));
    for (int i = 0; i < 6000 && program.lines_in("run/trials.jsonl") < trials; ++i) ::usleep(5000);
    ::kill(child.process_id(), signal);
    const auto status = child.wait(std::chrono::seconds(60));
    EXPECT_TRUE(status.has_value());
    return status.value_or(ExitStatus{});
  }
  Program program;
};

TEST_F(TuneVerb, PrintsTheTableTheRecommendationAndItsReason) {
  const CapturedOutput output = program.run(program.tune());
  EXPECT_EQ(output.status.code, 0) << output.text;
  for (const char* expected :
       {"32x1", "1x32", "measured", "Recommended: --split 32x1", "the fastest of 6 exact splits of 32",
        "pays back after", "The common advice", "Run folder: run"}) {
    EXPECT_NE(output.text.find(expected), std::string::npos) << expected << " in\n" << output.text;
  }
  EXPECT_EQ(parse_json(program.run(program.tune({"--json", "--quiet"})).text, "output").at("planned_steps"),
            6);  // 180 of the 200 rows are trained on
  const Json result = program.result();
  EXPECT_EQ(result.at("recommended"), 0);
  EXPECT_EQ(read_json_file(program.folder / "run" / "run.json").at("facts").at("framework"), "test worker");
  EXPECT_EQ(read_json_file(program.folder / "run" / "job.json").at("mode"), "trials");
}

TEST_F(TuneVerb, JsonIsOneDocumentOnStandardOutput) {
  std::vector<std::string> words = program.tune({"--json", "--quiet"});
  const CapturedOutput output = program.run(words);
  const Json document = parse_json(output.text, "output");
  const Json& trials = document.at("trials");
  const auto splits = std::count_if(trials.begin(), trials.end(),
                                    [](const Json& trial) { return trial.at("micro_tokens").is_null(); });
  EXPECT_EQ(splits, 6);
  EXPECT_GT(trials.size(), 6u);  // token cuts stand behind the splits
  EXPECT_EQ(document.at("run_folder"), "run");
}

TEST_F(TuneVerb, TokenCutsStandBesideThePackedLayoutOnly) {
  const CapturedOutput output = program.run(program.tune({"--layout", "sorted"}));
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_EQ(program.result().at("trials").size(), 6u);
}

TEST_F(TuneVerb, AMemoryLimitDropsTheSplitsAboveIt) {
  program.set_plan({{"base_bytes", 100 << 20}, {"bytes_per_example", 10 << 20}});
  const CapturedOutput output = program.run(program.tune({"--memory-limit", "200MiB"}));
  EXPECT_EQ(output.status.code, 0) << output.text;
  const Json result = program.result();
  EXPECT_EQ(result.at("trials").at(1).at("outcome"), "out_of_memory");  // 16x2: 260 MiB
  EXPECT_EQ(result.at("trials").at(0).at("outcome"), "not_tried");
  EXPECT_EQ(result.at("largest_that_fits"), 2);
  EXPECT_EQ(result.at("confirmed_on_worst_batch"), true);
}

TEST_F(TuneVerb, NothingFitsIsExitCodeOneAndSaysWhatWould) {
  program.set_plan({{"base_bytes", 100 << 20}, {"bytes_per_example", 10 << 20}});
  const CapturedOutput output = program.run(program.tune({"--memory-limit", "50MiB"}));
  EXPECT_EQ(output.status.code, 1) << output.text;
  EXPECT_NE(output.text.find("Nothing fits"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("It would fit with --memory-limit 111MiB"), std::string::npos) << output.text;
  EXPECT_TRUE(program.result().at("recommended").is_null());
}

TEST_F(TuneVerb, WorkersThatDieHangOrTalkNonsenseAreNamedAndTheRunGoesOn) {
  program.set_plan({{"at", {{"16", "kill"}, {"8", "garbage"}, {"4", "segfault"}}}});
  const CapturedOutput output = program.run(program.tune());
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("SIGKILL"), std::string::npos);
  EXPECT_NE(output.text.find("SIGSEGV"), std::string::npos);
  EXPECT_NE(output.text.find("not the protocol"), std::string::npos);
  const Json result = program.result();
  EXPECT_EQ(result.at("trials").at(1).at("outcome"), "crashed");
  EXPECT_EQ(result.at("recommended"), 0);
}

TEST_F(TuneVerb, CtrlCPrintsTheBestSoFarAndTheSameCommandContinues) {
  program.set_plan({{"sleeps", true}});
  EXPECT_EQ(signal_after(4, SIGINT).code, 130);
  EXPECT_NE(program.result().at("reason").get<std::string>().find("interrupted"), std::string::npos);
  const std::size_t before = program.lines_in("run/trials.jsonl");
  EXPECT_GE(before, 4u);
  const CapturedOutput again = program.run(program.tune());
  EXPECT_EQ(again.status.code, 0) << again.text;
  EXPECT_NE(again.text.find("continuing run with the"), std::string::npos) << again.text;
  EXPECT_EQ(program.result().at("settled"), true);
}

TEST_F(TuneVerb, KilledAtAnyMomentItContinues) {
  program.set_plan({{"sleeps", true}});
  EXPECT_EQ(signal_after(3, SIGKILL).signal, SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run" / "result.json"));
  std::ofstream(program.folder / "run" / "trials.jsonl", std::ios::app)
      << R"({"micro_ba)";  // torn by the kill
  const CapturedOutput again = program.run(program.tune());
  EXPECT_EQ(again.status.code, 0) << again.text;
  // Every trial is there once: the request of each line is its own.
  std::ifstream file(program.folder / "run" / "trials.jsonl");
  std::set<std::string> requests;
  for (std::string line; std::getline(file, line);) {
    Json trial = parse_json(line, "line");
    for (const char* measured : {"steps", "phases", "wall_seconds", "startup_seconds"}) trial.erase(measured);
    EXPECT_TRUE(requests.insert(dump_line(trial)).second) << line;
  }
}

// What does not decide a step's time is no part of the question; a memory limit is.
TEST_F(TuneVerb, ARepeatedQuestionIsAnsweredFromTheCache) {
  const auto tune = [&](const std::string& folder, const std::vector<std::string>& more) {
    std::vector<std::string> words = {
        "tune", Program::model_folder(), program.data(), "--effective-batch", "32", "--run", folder};
    words.insert(words.end(), more.begin(), more.end());
    return program.run(words);
  };
  ASSERT_EQ(tune("first", {}).status.code, 0);
  program.set_plan({{"at", {{"32", "kill"}, {"16", "kill"}, {"8", "kill"}}}});  // a trial would show
  const CapturedOutput answered = tune("again", {"--learning-rate", "0.1", "--seed", "7"});
  EXPECT_EQ(answered.status.code, 0) << answered.text;
  EXPECT_NE(answered.text.find("trials are taken from the cache"), std::string::npos) << answered.text;
  const Json measured = read_json_file(program.folder / "first" / "result.json");
  const Json again = read_json_file(program.folder / "again" / "result.json");
  EXPECT_EQ(again.at("trials"), measured.at("trials"));
  EXPECT_EQ(again.at("recommended"), measured.at("recommended"));
  const CapturedOutput anew = tune("anew", {"--no-cache"});
  EXPECT_NE(anew.text.find("SIGKILL"), std::string::npos) << anew.text;
  const CapturedOutput limited = tune("limited", {"--memory-limit", "8GiB"});
  EXPECT_NE(limited.text.find("SIGKILL"), std::string::npos) << limited.text;
}

TEST_F(TuneVerb, AnotherRequestIsNotMixedIn) {
  EXPECT_EQ(program.run(program.tune()).status.code, 0);
  const Json before = program.result();
  const CapturedOutput other = program.run(program.tune({"--seed", "7"}));
  EXPECT_EQ(other.status.code, 2) << other.text;
  EXPECT_NE(other.text.find("differs in: seed"), std::string::npos) << other.text;
  EXPECT_EQ(program.result(), before);
  EXPECT_EQ(program.run(program.tune({"--seed", "7", "--overwrite"})).status.code, 0);
}

TEST_F(TuneVerb, InexactSplitsAreSaidToBeSo) {
  const CapturedOutput output = program.run({"tune", Program::model_folder(), program.data(),
                                             "--effective-batch", "100", "--allow-inexact", "--run", "run"});
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("8x13: requested 100, real 104, +4 %"), std::string::npos) << output.text;
  EXPECT_EQ(program.result().at("requested_effective_batch"), 100);
}

TEST_F(TuneVerb, ExplainReadsTheRunAndSaysWhatItCannotKnow) {
  ASSERT_EQ(program.run(program.tune()).status.code, 0);
  const CapturedOutput output = program.run({"explain", "run"});
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("before its first token"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("optimizer step"), std::string::npos);
  EXPECT_NE(output.text.find("not known"), std::string::npos);  // the test worker reports no optimizer phase
  EXPECT_NE(output.text.find("Not known, matrix efficiency: "), std::string::npos) << output.text;
  EXPECT_EQ(output.text.find('_'), std::string::npos) << "a key of the document in " << output.text;
  const Json document = parse_json(program.run({"explain", "run", "--json"}).text, "output");
  EXPECT_TRUE(document.at("seconds_per_step").is_null());
  EXPECT_EQ(document.at("version"), 1);
}

}  // namespace
}  // namespace batchwright::cli
