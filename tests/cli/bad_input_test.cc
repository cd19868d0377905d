#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/program.h"
#include "paths.h"

namespace batchwright::cli {
namespace {

struct Case {
  std::vector<std::string> words;
  std::string message;  // a part of it
};

class BadInput : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Program::model_folder().empty()) GTEST_SKIP() << "no model package in " << python_for_tests();
  }
  std::size_t entries() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(program.folder.path()))
      ++count;
    return count;
  }
  // Exit code 2, the message, and nothing half-written.
  void expect_refused(const Case& wrong) {
    const std::size_t before = entries();
    const CapturedOutput output = program.run(wrong.words);
    EXPECT_EQ(output.status.code, 2) << output.text;
    EXPECT_NE(output.text.find(wrong.message), std::string::npos) << wrong.message << " in\n" << output.text;
    EXPECT_FALSE(std::filesystem::exists(program.folder / "run")) << wrong.message;
    EXPECT_FALSE(std::filesystem::exists(program.folder / "batchwright-runs")) << wrong.message;
    EXPECT_EQ(entries(), before + (std::filesystem::exists(program.folder / "cache") && !had_cache_ ? 1 : 0));
    had_cache_ = std::filesystem::exists(program.folder / "cache");
  }
  void write(const std::string& name, const std::string& content) {
    write_file_atomic(program.folder / name, content);
  }

  Program program;
  bool had_cache_ = false;
};

TEST_F(BadInput, OfOptionsIsRefusedByName) {
  const std::string model = Program::model_folder(), data = program.data();
  const std::vector<Case> cases = {
      {{"tune", model, data}, "--effective-batch: is missing"},
      {{"tune", model, data, "--effective-batch", "0"}, "--effective-batch: must be between 1"},
      {{"tune", model, data, "--effective-batch", "many"}, "--effective-batch"},
      {{"tune", model, data, "--effective-batch", "32", "--learning-rate", ""},
       "--learning-rate: needs a value"},
      {{"tune", model, data, "--effective-batch", "1000"}, "is more than the 180 rows"},
      {{"tune", model, data, "--effective-batch", "32", "--layout", "spiral"},
       "--layout: 'spiral' is not known"},
      {{"tune", model, data, "--effective-batch", "32", "--memory-limit", "much"},
       "--memory-limit: 'much' is not a size"},
      {{"tune", model, data, "--effective-batch", "32", "--budget", "soon"},
       "--budget: 'soon' is not a time"},
      {{"tune", model, data, "--effective-batch", "32", "--efective", "1"}, "--efective: is not an option"},
      {{"tune", model, data, "--effective-batch", "32", "--split", "8x4"}, "--split: is what tune finds out"},
      {{"tune", model, "--effective-batch", "32"}, "needs MODEL and DATA"},
      {{"train", model, data, "--effective-batch", "32", "--split", "64x1"},
       "micro-batch 64 is larger than the effective batch 32"},
      {{"train", model, data, "--effective-batch", "32", "--split", "8x5"},
       "8x5 makes 40 examples a step, and the effective batch is 32. Exact splits of 32: 32x1, 16x2, 8x4"},
      {{"train", model, data, "--effective-batch", "32", "--split", "8x4", "--devices", "3"},
       "8x4x3 (micro-batch x accumulation x devices) makes 96 examples a step"},
      {{"train", model, data, "--effective-batch", "32", "--split", "8x4", "--steps", "99999999999999999999"},
       "--steps: '99999999999999999999' is not a number that it can take"},
      {{"tune", model, data, "--effective-batch", "32", "--devices", "99999999999999999999"},
       "--devices: '99999999999999999999' is not a list of numbers of devices"},
      {{"train", model, data, "--effective-batch", "4", "--task", "qa"},
       "SQuAD's form is one document: data, paragraphs, qas, answers"},
      {{"train", model, data, "--effective-batch", "32", "--split", "eight"},
       "--split: 'eight' is not a split"},
      {{"train", model, data, "--effective-batch", "32", "--method", "full", "--lora", "8"},
       "--lora: contradicts"},
      {{"train", model, data, "--effective-batch", "32", "--progress", "xml"},
       "--progress: 'xml' is not known"},
      {{"train", model, data, "--effective-batch", "32", "--eval-fraction", "1"}, "--eval-fraction"},
      {{"tune", "bert-base-uncased", data, "--effective-batch", "32"},
       "`hf download NAME --local-dir FOLDER`"},
      {{"tune", "--effective-batch", "32", "python", "train.py", "--bs", "{micro}"},
       "--bs: is not an option of this verb. Put -- before your own command"},
      {{"explain"}, "needs RUN"},
      {{"explain", "nowhere"}, "nowhere: is not a folder"},
      {{"tnue"}, "Did you mean 'tune'?"},
      {{"plan", "gpt2", "--gppu", "T4"}, "--gppu: is not an option of this verb. Did you mean --gpu?"},
      {{"plan", "bert-base", "--effective-batch", "8", "--gpu", "T4", "--seq-len", "8"},
       "Did you mean \"bert-base-uncased\", \"bert-base-cased\""},
      {{"plan", "gpt2", "--effective-batch", "8", "--gpu", "list", "--seq-len", "8"},
       "Known are P100 SXM2 16GB, "},
      {{"plan", "gpt2", "--effective-batch", "8", "--gpu", "T4", "--seq-len", "8", "--memory-bytes", "12"},
       "--memory-bytes: '12' without a unit counts bytes. Name the unit: 12MiB or 12GiB"},
      {{"train", model, data, "--effective-batch", "32", "--split", "8x4", "--lora-targets", "query"},
       "--lora-targets: is for LoRA, and the method is full. Add --lora RANK"},
      {{"plan", "gpt2", "--effective-batch", "8", "--gpu", "T4", "--seq-len", "8", "--lora-rank", "4"},
       "--lora-rank: is for LoRA, and the method is full. Add --lora RANK, or --method qlora"},
      {{"plan", "gpt2", "extra"}, "extra: is one word too many"},
      {{"tune", "a", "b", "--effective-batch", "3", "--seed", "x"}, "--seed: 'x' is not a number"}};
  for (const Case& wrong : cases) expect_refused(wrong);
}

TEST_F(BadInput, OfFilesIsRefusedByPath) {
  const std::string model = Program::model_folder();
  write("empty.jsonl", "");
  write("unlabelled.jsonl", "{\"text\": \"a\", \"label\": 1}\n{\"text\": \"b\"}\n");
  write("binary.jsonl", "{\"text\": \"\xff\xfe\", \"label\": 1}\n");
  write("model/config.json", R"({"model_type": "bert", "num_hidden_layers": 2, "vocab_size": 9})");
  const auto tune = [](const std::string& model_folder, const std::string& data) {
    return std::vector<std::string>{"tune", model_folder, data, "--effective-batch", "32"};
  };
  const std::vector<Case> cases = {{tune("nowhere", program.data()), "nowhere: is not a folder"},
                                   {tune(model, "nowhere.jsonl"), "nowhere.jsonl"},
                                   {tune(model, "empty.jsonl"), "empty.jsonl"},
                                   {tune(model, "unlabelled.jsonl"), "unlabelled.jsonl:2"},
                                   {tune(model, "binary.jsonl"), "binary.jsonl"},
                                   {tune("model", program.data()), "hidden_size"}};
  for (const Case& wrong : cases) expect_refused(wrong);
}

// Without a descriptor of its own the next opened file would be standard output.
TEST_F(BadInput, AClosedStandardOutputIsNamedAndNothingElseIsWrittenInto) {
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", "exec \"$0\" train --help <&- >&- 2>&-",
                     programs_folder() + "/batchwright"};
  EXPECT_EQ(run_captured(options, std::chrono::seconds(20)).status.code, 2);
  options.command[2] = "exec \"$0\" train --help >&-";
  const CapturedOutput output = run_captured(options, std::chrono::seconds(20));
  EXPECT_EQ(output.status.code, 2) << output.text;
  EXPECT_NE(output.text.find("standard output: cannot"), std::string::npos) << output.text;
}

TEST_F(BadInput, ThatTheEngineRefusesTakesTheRunFolderBack) {
  program.set_plan({{"start", "exit2"}});
  expect_refused({program.tune(), "model.safetensors: is truncated"});
  expect_refused(
      {program.verb("train", {"--split", "8x4", "--steps", "3"}), "model.safetensors: is truncated"});
}

}  // namespace
}  // namespace batchwright::cli
