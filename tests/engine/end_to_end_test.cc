#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
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

// The limit is found on rows that train; a long one among the held-out does not fit beside seven others.
TEST_F(EndToEnd, HeldOutRowsTooLongForTheLimitAreEvaluatedOneByOneOrNotAtAll) {
  const auto write_rows = [&](int words_of_the_long_one) {
    std::string long_text, rows;
    for (int i = 0; i < words_of_the_long_one; ++i) long_text += "word ";
    for (int i = 0; i < 16; ++i) {
      rows += fmt::format("{{\"text\": \"{}\", \"label\": {}}}\n", i == 5 ? long_text : "word", i % 2);
    }
    write_file_atomic(program.folder / "data.jsonl", rows);
  };
  const auto trained = [&](const std::string& folder, int seed, std::vector<std::string> more) {
    more.insert(more.end(), {"--split", "8x1", "--steps", "1", "--eval-fraction", "0.5", "--seed",
                             std::to_string(seed), "--layout", "arrival"});
    const CapturedOutput output = run("train", folder, more);
    EXPECT_EQ(output.status.code, 0) << output.text;
    return read_json_file(program.folder / folder / "summary.json");
  };
  write_rows(40);
  int seed = 0;  // one that holds the long row out
  Json free = trained("free0", seed, {});
  while (free.at("tokens") != 24 && ++seed < 20) free = trained(fmt::format("free{}", seed), seed, {});
  ASSERT_EQ(free.at("tokens"), 24);
  const std::string peak = std::to_string(free.at("peak_bytes").get<std::int64_t>());
  const Json limited = trained("limited", seed, {"--memory-limit", peak});
  ASSERT_TRUE(limited.at("evaluation").contains("loss")) << limited;
  EXPECT_EQ(limited.at("evaluation").at("examples"), 8);
  EXPECT_NEAR(limited.at("evaluation").at("loss").get<double>(),
              free.at("evaluation").at("loss").get<double>(), 1e-6);

  write_rows(120);
  const Json not_evaluated = trained("not_evaluated", seed, {"--memory-limit", peak});
  EXPECT_NE(dump_line(not_evaluated.at("evaluation")).find("memory limit: "), std::string::npos)
      << not_evaluated;
  EXPECT_TRUE(
      std::filesystem::exists(program.folder / "not_evaluated" / "model" / "adapter_model.safetensors"));
}

// A checkpoint in 16 bits trains in 32: loaded in 16 again, the saved model would not give its own logits.
TEST_F(EndToEnd, TheSavedModelNamesTheTypeOfItsWeights) {
  const std::filesystem::path half = program.folder / "half";
  std::filesystem::copy(Program::model_folder(), half, std::filesystem::copy_options::recursive);
  Json config = read_json_file(half / "config.json");
  config["torch_dtype"] = config["dtype"] = "bfloat16";
  write_file_atomic(half / "config.json", config.dump());
  ProcessOptions options = program.command({"train", half.string(), program.data(), "--effective-batch", "4",
                                            "--split", "4x1", "--steps", "1", "--run", "full"});
  options.environment["BATCHWRIGHT_ENGINE"] = programs_folder() + "/batchwright-engine";
  const CapturedOutput output = run_captured(options, std::chrono::seconds(120));
  ASSERT_EQ(output.status.code, 0) << output.text;
  const Json saved = read_json_file(program.folder / "full" / "model" / "config.json");
  EXPECT_EQ(saved.at("torch_dtype"), "float32");
  EXPECT_EQ(saved.at("dtype"), "float32");
}

// NaN in every gradient is "the same" in every cut, and proves nothing.
TEST_F(EndToEnd, VerifyRefusesAModelWhoseGradientIsNotFinite) {
  const std::filesystem::path broken = program.folder / "broken";
  std::filesystem::copy(Program::model_folder(), broken, std::filesystem::copy_options::recursive);
  std::string weights = read_file(broken / "model.safetensors");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, weights.data(), sizeof header_bytes);
  const Json header = parse_json(std::string_view(weights).substr(8, header_bytes), "header");
  const auto begin =
      header.at("encoder.layer.0.attention.self.query.weight").at("data_offsets").at(0).get<std::size_t>();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(weights.data() + 8 + header_bytes + begin, &nan, sizeof nan);
  write_file_atomic(broken / "model.safetensors", weights);
  ProcessOptions options = program.command(
      {"verify", broken.string(), program.data(), "--effective-batch", "4", "--lora", "4", "--threads", "2"});
  options.environment["BATCHWRIGHT_ENGINE"] = programs_folder() + "/batchwright-engine";
  const CapturedOutput output = run_captured(options, std::chrono::seconds(120));
  EXPECT_EQ(output.status.code, 1) << output.text;
  EXPECT_NE(output.text.find("is not finite"), std::string::npos) << output.text;
}

TEST_F(EndToEnd, ATraceThatCannotBeWrittenIsRefusedBeforeTheTraining) {
  const CapturedOutput output =
      run("train", "traced", {"--split", "8x1", "--steps", "1", "--trace", program.folder.path().string()});
  EXPECT_EQ(output.status.code, 2) << output.text;
  EXPECT_FALSE(std::filesystem::exists(program.folder / "traced")) << output.text;
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

TEST_F(EndToEnd, TwoProcessesTrainAsOneDoesAndARunGoesOnOnAnotherNumber) {
  const std::vector<std::string> options = {"--steps", "4", "--save-every", "1"};
  const auto train = [&](const std::string& folder, std::vector<std::string> more) {
    more.insert(more.end(), options.begin(), options.end());
    return run("train", folder, more);
  };
  const CapturedOutput one = train("one", {"--split", "4x2"});
  ASSERT_EQ(one.status.code, 0) << one.text;
  const CapturedOutput two = train("two", {"--split", "4x1", "--devices", "2"});
  ASSERT_EQ(two.status.code, 0) << two.text;
  EXPECT_NE(two.text.find("Split: 4x1x2"), std::string::npos) << two.text;
  const Json alone = read_json_file(program.folder / "one" / "summary.json");
  const Json together = read_json_file(program.folder / "two" / "summary.json");
  EXPECT_NEAR(alone.at("final_loss").get<double>(), together.at("final_loss").get<double>(), 1e-5);
  EXPECT_EQ(alone.at("evaluation").at("accuracy"), together.at("evaluation").at("accuracy"));
  EXPECT_EQ(alone.at("tokens"), together.at("tokens"));

  // As after a kill: the checkpoint of step 3 is there, the summary is not.
  std::filesystem::remove(program.folder / "one" / "summary.json");
  const CapturedOutput resumed =
      train("one", {"--split", "2x1x4", "--checkpointing", "full", "--memory-limit", "2GiB", "--keep", "1"});
  ASSERT_EQ(resumed.status.code, 0) << resumed.text;
  EXPECT_NE(resumed.text.find("2x1x4 keeps its effective batch of 8"), std::string::npos) << resumed.text;
  const Json after = read_json_file(program.folder / "one" / "summary.json");
  EXPECT_NEAR(alone.at("final_loss").get<double>(), after.at("final_loss").get<double>(), 1e-5);
}

TEST_F(EndToEnd, TuneComparesNumbersOfDevices) {
  const CapturedOutput output = run("tune", "tuned", {"--devices", "1,2"});
  ASSERT_EQ(output.status.code, 0) << output.text;
  const Json result = result_of("tuned");
  ASSERT_EQ(result.at("scaling").size(), 2u) << output.text;
  EXPECT_EQ(result.at("scaling").at(0).at("speedup"), 1);
  EXPECT_GT(result.at("scaling").at(1).at("speedup").get<double>(), 0);
  EXPECT_GT(result.at("scaling").at(1).at("collective_share").get<double>(), 0);
  EXPECT_NE(output.text.find("2 devices ("), std::string::npos) << output.text;
  std::size_t on_two = 0;
  for (const Json& trial : result.at("trials")) on_two += trial.at("devices") == 2 ? 1 : 0;
  EXPECT_EQ(on_two, 3u);  // 4x1x2, 2x2x2, 1x4x2
}

TEST_F(EndToEnd, DevicesThatCannotShareTheBatchAreRefused) {
  const CapturedOutput three = run("train", "three", {"--devices", "3", "--steps", "1"});
  EXPECT_EQ(three.status.code, 2) << three.text;
  const CapturedOutput contradiction = run("train", "both", {"--devices", "2", "--split", "2x1x4"});
  EXPECT_EQ(contradiction.status.code, 2) << contradiction.text;
  EXPECT_NE(contradiction.text.find("contradicts --split"), std::string::npos) << contradiction.text;
}

}  // namespace
}  // namespace batchwright::cli
