#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "cli/program.h"
#include "paths.h"

namespace batchwright::cli {
namespace {

class TrainVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program::model_folder().empty()) GTEST_SKIP() << "no model package in " << python_for_tests();
  }
  std::vector<std::string> train(const std::vector<std::string>& more) const {
    return program.verb("train", more);
  }
  Program program;
};

TEST_F(TrainVerb, PrintsTheSummary) {
  const CapturedOutput output = program.run(train({"--split", "8x4", "--steps", "5"}));
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("Split: 8x4\nHeld-out accuracy: 75.0 % of 20 examples\n"), std::string::npos)
      << output.text;
  EXPECT_NE(output.text.find("\nevaluating\n"), std::string::npos) << "a remark was lost in\n" << output.text;
  const Json job = read_json_file(program.folder / "run" / "job.json");
  EXPECT_EQ(job.at("mode"), "train");
  EXPECT_EQ(job.at("split"), "8x4");
  EXPECT_EQ(job.at("options").at("steps"), 5);
}

TEST_F(TrainVerb, ProgressJsonMirrorsTheSteps) {
  const CapturedOutput output =
      program.run(train({"--split", "8x4", "--steps", "5", "--progress", "json", "--quiet"}));
  std::istringstream lines(output.text);
  std::vector<Json> documents;
  for (std::string line; std::getline(lines, line);) documents.push_back(parse_json(line, "line"));
  ASSERT_EQ(documents.size(), 6u);
  EXPECT_EQ(documents[4].at("step"), 5);
  EXPECT_EQ(documents[4].at("micro_steps"), 4);
  EXPECT_EQ(documents[5].at("evaluation").at("accuracy"), 0.75);
}

TEST_F(TrainVerb, AutoTunesFirstAndSaysWhatItSaved) {
  const CapturedOutput output = program.run(train({"--steps", "5"}));
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("Recommended: --split 32x1"), std::string::npos) << output.text;
  EXPECT_NE(output.text.find("Against 1x32, the slowest split, 32x1 saved about"), std::string::npos)
      << output.text;
  EXPECT_TRUE(std::filesystem::exists(program.folder / "run" / "tune" / "result.json"));
  const CapturedOutput explained = program.run({"explain", "run"});
  EXPECT_NE(explained.text.find("before its first token"), std::string::npos) << explained.text;
}

TEST_F(TrainVerb, NeverTrainsOverAnotherTraining) {
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5"})).status.code, 0);
  const CapturedOutput again = program.run(train({"--split", "8x4", "--steps", "5"}));
  EXPECT_EQ(again.status.code, 2) << again.text;
  EXPECT_NE(again.text.find("holds a training"), std::string::npos) << again.text;
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5", "--overwrite"})).status.code, 0);
}

TEST_F(TrainVerb, AFolderInUseIsSaidToBeInUse) {
  program.set_plan({{"sleeps", true}});
  ChildProcess child = ChildProcess::start(program.command(train({"--split", "8x4", "--steps", "100000"})));
  for (int i = 0; i < 6000 && program.lines_in("run/steps.jsonl") < 1; ++i) ::usleep(5000);
  const CapturedOutput second = program.run(train({"--split", "8x4", "--steps", "100000"}));
  ::kill(child.process_id(), SIGINT);
  EXPECT_TRUE(child.wait(std::chrono::seconds(60)).has_value());
  EXPECT_EQ(second.status.code, 2) << second.text;
  EXPECT_NE(second.text.find("another batchwright is running in it"), std::string::npos) << second.text;
}

TEST_F(TrainVerb, DecimalLabelsAreClassesWithAWarning) {
  std::ofstream data(program.folder / "data.csv");
  data << "text,label\n";
  for (int row = 0; row < 100; ++row) data << "words of row " << row << (row % 2 ? ",0.5\n" : ",1.5\n");
  data.close();
  const CapturedOutput output =
      program.run({"train", Program::model_folder(), "data.csv", "--effective-batch", "32", "--split", "8x4",
                   "--steps", "5", "--run", "run"});
  EXPECT_EQ(output.status.code, 0) << output.text;
  EXPECT_NE(output.text.find("labels 0.5, 1.5 are decimal numbers"), std::string::npos) << output.text;
}

// A folder with another method's files beside the new ones would load as neither.
TEST_F(TrainVerb, OverwriteLeavesNoFormerModel) {
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5"})).status.code, 0);
  write_file_atomic(program.folder / "run" / "model" / "adapter_config.json", "{}");
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5", "--overwrite"})).status.code, 0);
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run" / "model" / "adapter_config.json"));
}

// A second training of the same request has a folder of its own, and is found there again after a kill.
TEST_F(TrainVerb, WithoutAFolderGoesOnInTheOneThatWasInterrupted) {
  const std::vector<std::string> words = {"train",
                                          Program::model_folder(),
                                          program.data(),
                                          "--effective-batch",
                                          "32",
                                          "--split",
                                          "8x4",
                                          "--steps",
                                          "5"};
  const std::filesystem::path runs = program.folder / "batchwright-runs";
  EXPECT_EQ(program.run(words).status.code, 0);
  const std::filesystem::path first = *std::filesystem::directory_iterator(runs);
  write_file_atomic(first / "summary.json", R"({"interrupted": false})");
  EXPECT_EQ(program.run(words).status.code, 0);
  const std::filesystem::path second = first.string() + "-2";
  ASSERT_TRUE(std::filesystem::exists(second));
  write_file_atomic(second / "checkpoints" / "step-000000003.safetensors", "");
  EXPECT_EQ(program.run(words).status.code, 0);
  EXPECT_FALSE(std::filesystem::exists(first.string() + "-3"));
}

TEST_F(TrainVerb, OverwriteNeverEmptiesTheFolderOfItsOwnModel) {
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5"})).status.code, 0);
  std::filesystem::copy(Program::model_folder(), program.folder / "run" / "model",
                        std::filesystem::copy_options::recursive);
  const CapturedOutput refused =
      program.run({"train", "run/model", program.data(), "--effective-batch", "32", "--split", "8x4",
                   "--steps", "5", "--run", "run", "--overwrite"});
  EXPECT_EQ(refused.status.code, 2) << refused.text;
  EXPECT_NE(refused.text.find("which --overwrite would empty"), std::string::npos) << refused.text;
  EXPECT_TRUE(std::filesystem::exists(program.folder / "run" / "model" / "config.json"));
}

// A full disk, for one, ends a training with exit code 2: its checkpoints must still belong to a run.
TEST_F(TrainVerb, WhatFailsAfterTheFirstStepKeepsItsRunAndWhatFailsBeforeLeavesNothing) {
  program.set_plan({{"at_step", {{"3", "exit2"}}}});
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5"})).status.code, 2);
  EXPECT_TRUE(std::filesystem::exists(program.folder / "run" / "run.json"));
  EXPECT_EQ(program.lines_in("run/steps.jsonl"), 2u);
  std::filesystem::remove_all(program.folder / "run");
  program.set_plan({{"at_step", {{"1", "exit2"}}}});
  EXPECT_EQ(program.run(train({"--split", "8x4", "--steps", "5"})).status.code, 2);
  EXPECT_FALSE(std::filesystem::exists(program.folder / "run"));
}

TEST_F(TrainVerb, CtrlCLetsTheEngineFinishItsStep) {
  program.set_plan({{"sleeps", true}});
  ChildProcess child = ChildProcess::start(program.command(train({"--split", "8x4", "--steps", "100000"})));
  for (int i = 0; i < 6000 && program.lines_in("run/steps.jsonl") < 3; ++i) ::usleep(5000);
  ::kill(child.process_id(), SIGINT);
  const auto status = child.wait(std::chrono::seconds(60));
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 130);
  EXPECT_GE(program.lines_in("run/steps.jsonl"), 3u);
}

TEST_F(TrainVerb, AnEngineThatDiesIsNotASuccess) {
  program.set_plan({{"at_step", {{"3", "kill"}}}});
  const CapturedOutput killed = program.run(train({"--split", "8x4", "--steps", "5"}));
  EXPECT_EQ(killed.status.code, 70) << killed.text;
  EXPECT_NE(killed.text.find("was ended by SIGKILL"), std::string::npos) << killed.text;
}

}  // namespace
}  // namespace batchwright::cli
