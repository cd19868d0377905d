#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "cli/program.h"
#include "paths.h"

namespace batchwright::cli {
namespace {

// Both programs together, on a real model.
class EndToEnd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program::model_folder().empty()) GTEST_SKIP() << "no model package in " << python_for_tests();
  }
  CapturedOutput run(const std::string& verb, const std::string& folder, std::vector<std::string> more) {
    std::vector<std::string> words = {verb,
                                      Program::model_folder(),
                                      program.data(),
                                      "--effective-batch",
                                      "8",
                                      "--lora",
                                      "4",
                                      "--threads",
                                      "2",
                                      "--run",
                                      folder};
    words.insert(words.end(), more.begin(), more.end());
    ProcessOptions options = program.command(words);
    options.environment["BATCHWRIGHT_ENGINE"] = programs_folder() + "/batchwright-engine";
    return run_captured(options, std::chrono::seconds(240));
  }
  Json result_of(const std::string& folder) {
    return read_json_file(program.folder / folder / "result.json");
  }
  Program program;
};

TEST_F(EndToEnd, TuneMeasuresEverySplitAndALimitDropsTheLargest) {
  const CapturedOutput free = run("tune", "free", {});
  ASSERT_EQ(free.status.code, 0) << free.text;
  const Json all = result_of("free");
  for (const Json& trial : all.at("trials")) EXPECT_EQ(trial.at("outcome"), "measured") << trial;
  EXPECT_EQ(all.at("confirmed_on_worst_batch"), true);
  EXPECT_EQ(all.at("largest_that_fits"), 0);
  EXPECT_FALSE(all.at("explanation").at("seconds_per_step").is_null());

  const auto peak = [&](std::size_t i) {
    return all.at("trials").at(i).at("peak_bytes").get<std::int64_t>();
  };
  const std::int64_t limit = (peak(0) + peak(1)) / 2;  // between 8x1 and 4x2
  ASSERT_LT(peak(1), limit);
  const CapturedOutput limited = run("tune", "limited", {"--memory-limit", std::to_string(limit)});
  ASSERT_EQ(limited.status.code, 0) << limited.text;
  const Json under = result_of("limited");
  EXPECT_EQ(under.at("trials").at(0).at("outcome"), "out_of_memory") << limited.text;
  EXPECT_EQ(under.at("largest_that_fits"), 1);
  EXPECT_GE(under.at("recommended").get<int>(), 1);
  EXPECT_EQ(under.at("confirmed_on_worst_batch"), true);

  const CapturedOutput none = run("tune", "none", {"--memory-limit", "1MiB"});
  EXPECT_EQ(none.status.code, 1) << none.text;
  EXPECT_NE(none.text.find("It would fit with --memory-limit"), std::string::npos) << none.text;
}

TEST_F(EndToEnd, TrainWritesStepsSummaryAndAdapters) {
  const CapturedOutput output = run("train", "trained", {"--split", "4x2", "--steps", "3"});
  ASSERT_EQ(output.status.code, 0) << output.text;
  EXPECT_EQ(program.lines_in("trained/steps.jsonl"), 3u);
  const Json summary = read_json_file(program.folder / "trained" / "summary.json");
  EXPECT_EQ(summary.at("steps"), 3);
  EXPECT_EQ(summary.at("evaluation").at("examples"), 20);
  EXPECT_TRUE(std::filesystem::exists(program.folder / "trained" / "model" / "adapter_model.safetensors"));
  EXPECT_NE(output.text.find("Held-out accuracy"), std::string::npos) << output.text;
}

TEST_F(EndToEnd, EveryTaskOfAnEncoderTrainsAndPrintsItsMetric) {
  std::string sentences;
  for (int i = 0; i < 60; ++i) {
    sentences += fmt::format("Anna B-PER\nlives O\nin O\nTown{} B-LOC\n\n", i);
  }
  write_file_atomic(program.folder / "ner.conll", sentences);
  std::string paragraphs;
  for (int i = 0; i < 30; ++i) {
    paragraphs += fmt::format(
        R"({}{{"context": "Anna lives in Town{} with her dog.", "qas": [{{"id": "{}", "question": "Where?", "answers": [{{"text": "Town{}", "answer_start": 14}}]}}]}})",
        i == 0 ? "" : ",\n", i, i, i);
  }
  write_file_atomic(program.folder / "qa.json", "{\"data\": [{\"paragraphs\": [" + paragraphs + "]}]}");
  const auto trained = [&](const std::string& data, const std::string& verb, std::vector<std::string> more) {
    std::vector<std::string> words = {verb,
                                      Program::model_folder(),
                                      (program.folder / data).string(),
                                      "--effective-batch",
                                      "8",
                                      "--lora",
                                      "4",
                                      "--threads",
                                      "2",
                                      "--run",
                                      verb + data};
    words.insert(words.end(), more.begin(), more.end());
    ProcessOptions options = program.command(words);
    options.environment["BATCHWRIGHT_ENGINE"] = programs_folder() + "/batchwright-engine";
    return run_captured(options, std::chrono::seconds(240));
  };
  const CapturedOutput ner = trained("ner.conll", "train", {"--split", "4x2", "--steps", "3"});
  EXPECT_EQ(ner.status.code, 0) << ner.text;
  EXPECT_NE(ner.text.find("Held-out entity F1: "), std::string::npos) << ner.text;
  EXPECT_NE(ner.text.find("of 12 entities"), std::string::npos) << ner.text;
  EXPECT_NE(ner.text.find("task: token-classification"), std::string::npos) << ner.text;
  const CapturedOutput qa = trained("qa.json", "train", {"--split", "4x2", "--steps", "3", "--task", "qa"});
  EXPECT_EQ(qa.status.code, 0) << qa.text;
  EXPECT_NE(qa.text.find("Held-out exact match: "), std::string::npos) << qa.text;
  EXPECT_NE(qa.text.find("of 3 questions"), std::string::npos) << qa.text;
  EXPECT_EQ(trained("ner.conll", "verify", {}).status.code, 0);
  EXPECT_EQ(trained("qa.json", "verify", {}).status.code, 0);
  write_file_atomic(program.folder / "text.txt", sentences);
  const CapturedOutput lm =
      trained("text.txt", "train", {"--split", "4x2", "--steps", "3", "--max-length", "16"});
  EXPECT_EQ(lm.status.code, 2) << lm.text;
  EXPECT_NE(lm.text.find("is an encoder"), std::string::npos) << lm.text;
}

TEST_F(EndToEnd, ATruncatedModelIsRefusedAndNothingIsLeft) {
  const std::filesystem::path broken = program.folder / "broken";
  std::filesystem::copy(Program::model_folder(), broken, std::filesystem::copy_options::recursive);
  std::filesystem::resize_file(broken / "model.safetensors", 1000);
  ProcessOptions options = program.command(
      {"tune", broken.string(), program.data(), "--effective-batch", "8", "--run", "refused"});
  options.environment["BATCHWRIGHT_ENGINE"] = programs_folder() + "/batchwright-engine";
  const CapturedOutput output = run_captured(options, std::chrono::seconds(120));
  EXPECT_EQ(output.status.code, 2) << output.text;
  EXPECT_NE(output.text.find("model.safetensors"), std::string::npos) << output.text;
  EXPECT_FALSE(std::filesystem::exists(program.folder / "refused"));
}

}  // namespace
}  // namespace batchwright::cli
