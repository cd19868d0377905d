#include "data/prepare.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/files.h"
#include "data/python.h"
#include "data/sampler.h"
#include "data/token_file.h"
#include "paths.h"

namespace batchwright::data {
namespace {

// A word-level tokenizer small enough to know every id by heart: [CLS] = 1, [SEP] = 2, a = 3, b = 4, c = 5.
constexpr std::string_view kTokenizer = R"({
  "version": "1.0",
  "truncation": {"max_length": 3, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
  "padding": {"strategy": {"Fixed": 64}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
              "pad_type_id": 0, "pad_token": "[UNK]"},
  "added_tokens": [],
  "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "decoder": null,
  "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 3, "b": 4, "c": 5}}
})";

class Prepare : public testing::Test {
 protected:
  void SetUp() override {
    write("model/tokenizer.json", kTokenizer);
    write("model/config.json", "{}");
    write("rows.jsonl",
          "{\"text\": \"a b c a b c\", \"label\": \"yes\"}\n{\"text\": \"\", \"label\": \"no\"}\n");
    request_ = {.data = folder_ / "rows.jsonl",
                .model_folder = folder_ / "model",
                .columns = {},
                .max_length = 6,
                .cache_folder = folder_ / "cache"};
  }
  void TearDown() override {
    std::filesystem::remove_all(folder_);
    ::unsetenv("BATCHWRIGHT_PYTHON");
  }
  void write(const std::string& name, std::string_view content) {
    write_file_atomic(folder_ / name, content);
  }

  std::vector<std::int32_t> ids(const TokenFile& file, std::uint32_t row) {
    return {file.ids(row).begin(), file.ids(row).end()};
  }
  std::vector<std::int32_t> labels(const TokenFile& file, std::uint32_t row) {
    return {file.token_labels(row).begin(), file.token_labels(row).end()};
  }
  std::string fault() {
    try {
      prepare(request_);
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()), 2) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "nothing was thrown";
    return "";
  }
  std::ptrdiff_t cached_files() {
    return std::distance(std::filesystem::directory_iterator(folder_ / "cache" / "tokens"), {});
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("batchwright_prepare_" + std::to_string(::getpid()));
  PrepareRequest request_;
};

TEST_F(Prepare, TokenisesCutsAndDoesNotPad) {
  const Prepared made = prepare(request_);
  EXPECT_FALSE(made.from_cache);
  const TokenFile file = TokenFile::open(made.token_file);
  ASSERT_EQ(file.rows(), 2u);
  EXPECT_EQ(ids(file, 0), (std::vector<std::int32_t>{1, 3, 4, 5, 3, 2}));
  EXPECT_EQ(ids(file, 1), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(file.truncated_rows(), 1u);
  EXPECT_EQ(file.max_length(), 6);
  EXPECT_EQ(file.label_names(), (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(file.label(0), 1);
  EXPECT_EQ(cached_files(), 1);  // nothing half-written beside it
}

TEST_F(Prepare, PairsGetTheirTokenTypes) {
  write("pairs.csv", "text,text_pair,label\na,b c,0\nc,a,1\n");
  request_.data = folder_ / "pairs.csv";
  const TokenFile file = TokenFile::open(prepare(request_).token_file);
  EXPECT_EQ(ids(file, 0), (std::vector<std::int32_t>{1, 3, 2, 4, 5, 2}));
  EXPECT_EQ(std::vector<std::uint8_t>(file.type_ids(0).begin(), file.type_ids(0).end()),
            (std::vector<std::uint8_t>{0, 0, 0, 1, 1, 1}));
}

TEST_F(Prepare, TheFirstSubWordHasTheLabel) {
  // A word of three letters becomes three tokens.
  std::string letters(kTokenizer);
  const std::string splitting = R"({"type": "WhitespaceSplit"})";
  letters.replace(letters.find(splitting), splitting.size(),
                  R"({"type": "Split", "pattern": {"Regex": "."}, "behavior": "Isolated", "invert": false})");
  write("model/tokenizer.json", letters);
  write("rows.conll", "abc B-X\nb O\n\na O\ncccccc I-X\nb O\n");
  request_.data = folder_ / "rows.conll";
  const Prepared made = prepare(request_);
  EXPECT_EQ(made.task, Task::TokenClassification);
  const TokenFile file = TokenFile::open(made.token_file);
  EXPECT_EQ(file.label_names(), (std::vector<std::string>{"B-X", "I-X", "O"}));
  EXPECT_EQ(ids(file, 0), (std::vector<std::int32_t>{1, 3, 4, 5, 4, 2}));
  EXPECT_EQ(labels(file, 0), (std::vector<std::int32_t>{-100, 0, -100, -100, 2, -100}));
  EXPECT_EQ(labels(file, 1), (std::vector<std::int32_t>{-100, 2, 1, -100, -100, -100}));  // cut
  EXPECT_EQ(file.targets(0), 2);
  EXPECT_EQ(file.truncated_rows(), 1u);
}

TEST_F(Prepare, WindowsOfAContextShareTheStrideAndKnowTheAnswer) {
  // Question "a", so that a window of 8 has 8 - 3 - 1 = 4 tokens of the context.
  write("rows.json", R"({"data": [{"paragraphs": [{"context": "a b c a b c a", "qas": [
    {"id": "q", "question": " a", "answers": [{"text": "b c", "answer_start": 2}]},
    {"id": "r", "question": "a", "is_impossible": true, "answers": []}]}]}]})");
  request_.data = folder_ / "rows.json";
  request_.max_length = 8;
  request_.doc_stride = 2;
  const TokenFile file = TokenFile::open(prepare(request_).token_file);
  ASSERT_EQ(file.task(), Task::QuestionAnswering);
  ASSERT_EQ(file.rows(), 6u);
  EXPECT_EQ(ids(file, 0), (std::vector<std::int32_t>{1, 3, 2, 3, 4, 5, 3, 2}));
  EXPECT_EQ(ids(file, 1), (std::vector<std::int32_t>{1, 3, 2, 5, 3, 4, 5, 2}));
  EXPECT_EQ(file.span(0).first, 4);
  EXPECT_EQ(file.span(0).last, 5);
  EXPECT_EQ(file.span(1).last, 0);  // cut through: the answer is not wholly here
  EXPECT_EQ(file.characters(0, 4).first, 2);
  EXPECT_EQ(file.characters(0, 5).last, 5);
  EXPECT_EQ(file.characters(0, 0).first, -1);
  EXPECT_EQ(file.questions(), 2u);
  EXPECT_EQ(file.question(3), 1u);
  EXPECT_EQ(file.question_id(1), "r");
  EXPECT_EQ(file.context(0), "a b c a b c a");
  EXPECT_EQ(file.answers(0), (std::vector<std::string_view>{"b c"}));
  EXPECT_TRUE(file.answers(1).empty());
  const HoldOut sides = split_rows(file, 0.5, 0);  // a question's windows are never on both sides
  ASSERT_EQ(sides.held_out.size(), 3u);
  for (const std::uint32_t row : sides.held_out)
    EXPECT_EQ(file.question(row), file.question(sides.held_out.front()));
  request_.doc_stride = 4;
  EXPECT_NE(fault().find("rows.json:2: its question leaves 4 of 8 tokens"), std::string::npos);
}

TEST_F(Prepare, DocumentsFollowOneAnotherInBlocksOrNot) {
  write("rows.txt", "a b\n\nc a b c\n");
  request_.data = folder_ / "rows.txt";
  const TokenFile packed = TokenFile::open(prepare(request_).token_file);
  ASSERT_EQ(packed.task(), Task::CausalLm);
  ASSERT_EQ(packed.rows(), 2u);
  EXPECT_EQ(ids(packed, 0), (std::vector<std::int32_t>{1, 3, 4, 2, 1, 2}));
  EXPECT_EQ(labels(packed, 1), (std::vector<std::int32_t>{1, 5, 3, 4, 5, 2}));
  EXPECT_EQ(packed.targets(1), 5);
  request_.packing = false;
  const TokenFile apart = TokenFile::open(prepare(request_).token_file);
  ASSERT_EQ(apart.rows(), 2u);
  EXPECT_EQ(ids(apart, 0), (std::vector<std::int32_t>{1, 3, 4, 2}));
}

TEST_F(Prepare, APromptHasNoLabelsAndACompletionEnds) {
  write("model/config.json", R"({"eos_token_id": [0, 2]})");
  write(
      "rows.jsonl",
      "{\"prompt\": \"a b\", \"completion\": \" c\"}\n{\"prompt\": \"a b c a b\", \"completion\": \" c\"}\n");
  const TokenFile file = TokenFile::open(prepare(request_).token_file);
  ASSERT_EQ(file.rows(), 1u);
  EXPECT_EQ(file.skipped_rows(), 1u);  // its completion lies beyond max_length
  EXPECT_EQ(ids(file, 0), (std::vector<std::int32_t>{1, 3, 4, 5, 2, 0}));
  EXPECT_EQ(labels(file, 0), (std::vector<std::int32_t>{-100, -100, -100, 5, 2, 0}));
}

TEST_F(Prepare, TheSameRequestComesFromTheCacheAndAnyChangeDoesNot) {
  const auto first = prepare(request_).token_file;
  EXPECT_TRUE(prepare(request_).from_cache);
  request_.max_length = 5;
  EXPECT_FALSE(prepare(request_).from_cache);
  request_.max_length = 6;
  write("model/config.json", R"({"id2label": {"0": "yes", "1": "no"}})");
  const Prepared renamed = prepare(request_);
  EXPECT_FALSE(renamed.from_cache);
  EXPECT_EQ(TokenFile::open(renamed.token_file).label(0), 0);
  write("rows.jsonl", "{\"text\": \"a\", \"label\": \"yes\"}\n{\"text\": \"b\", \"label\": \"no\"}\n");
  EXPECT_FALSE(prepare(request_).from_cache);
  EXPECT_EQ(cached_files(), 4);
}

TEST_F(Prepare, ADamagedCacheEntryIsMadeAgain) {
  const auto path = prepare(request_).token_file;
  std::filesystem::resize_file(path, 100);
  EXPECT_FALSE(prepare(request_).from_cache);
  EXPECT_EQ(TokenFile::open(path).rows(), 2u);
}

TEST_F(Prepare, ManyRowsReportProgress) {
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += fmt::format("{{\"text\": \"a b\", \"label\": {}}}\n", i % 2);
  write("rows.jsonl", lines);
  std::int64_t last = -1;
  const Prepared made = prepare(request_, [&](std::int64_t done, std::int64_t rows) {
    EXPECT_EQ(rows, 20000);
    EXPECT_GE(done, last);
    last = done;
  });
  EXPECT_EQ(last, 20000);
  EXPECT_EQ(TokenFile::open(made.token_file).tokens(), 80000);
}

TEST_F(Prepare, StoppingLeavesNothing) {
  struct Stop {};
  EXPECT_THROW(prepare(request_, [](std::int64_t, std::int64_t) { throw Stop{}; }), Stop);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache" / "tokens")) {
    EXPECT_EQ(entry.path().extension(), ".tokens") << entry.path();
  }
}

TEST_F(Prepare, WhatAKilledProcessLeftIsRemoved) {
  const pid_t ended = ::fork();
  if (ended == 0) ::_exit(0);
  ::waitpid(ended, nullptr, 0);
  const std::filesystem::path tokens = folder_ / "cache" / "tokens";
  std::filesystem::create_directories(tokens);
  const auto named = [&](pid_t process, const char* kind) {
    return tokens / fmt::format("0123.tokens.{}.{}", process, kind);
  };
  for (const char* kind : {"request", "report", "partial"}) {
    write_file_atomic(named(ended, kind), "");
    write_file_atomic(named(::getppid(), kind), "");
  }
  write_file_atomic(tokens / "notes.request", "");
  prepare(request_);
  for (const char* kind : {"request", "report", "partial"}) {
    EXPECT_FALSE(std::filesystem::exists(named(ended, kind))) << kind;
    EXPECT_TRUE(std::filesystem::exists(named(::getppid(), kind))) << kind;
  }
  EXPECT_TRUE(std::filesystem::exists(tokens / "notes.request"));
}

TEST_F(Prepare, FaultsAreNamed) {
  write("rows.jsonl", "{\"text\": \"a\", \"label\": 0}\n\n{\"text\": \"b\"}\n");
  EXPECT_NE(fault().find("rows.jsonl:3: is a row without a label"), std::string::npos);
  write("rows.jsonl", "{\"text\": \"a\", \"label\": 0}\n{\"text\": \"b\", \"label\": 1}\n");
  request_.max_length = 2;  // taken by [CLS] and [SEP]
  EXPECT_NE(fault().find("maximum length of 2 leaves no room"), std::string::npos);
  request_.max_length = 0;
  EXPECT_NE(fault().find("max-length"), std::string::npos);
  request_.max_length = 6;
  write("model/tokenizer.json", "{\"version\": 7}");
  EXPECT_NE(fault().find("tokenizer.json"), std::string::npos);
  std::filesystem::remove(folder_ / "model" / "tokenizer.json");
  EXPECT_NE(fault().find("tokenizer.json: is not there"), std::string::npos);
  request_.model_folder = folder_ / "nowhere";
  EXPECT_NE(fault().find("nowhere: is not a folder"), std::string::npos);
}

TEST_F(Prepare, ATextWithoutTokensNamesItsLine) {
  std::string bare(kTokenizer);
  const std::string processor = R"({"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]})";
  bare.replace(bare.find(processor), processor.size(), "null");
  write("model/tokenizer.json", bare);
  EXPECT_NE(fault().find("rows.jsonl:2: its text has no tokens"), std::string::npos);
}

TEST_F(Prepare, APythonThatCannotDoItIsNamed) {
  ::setenv("BATCHWRIGHT_PYTHON", "/nonexistent/python", 1);
  EXPECT_NE(fault().find("/nonexistent/python"), std::string::npos);
  // A Python that sees no installed package.
  write("python", "#!/bin/sh\nexec " + python_for_tests() + " -S \"$@\"\n");
  std::filesystem::permissions(folder_ / "python", std::filesystem::perms::owner_all);
  ::setenv("BATCHWRIGHT_PYTHON", (folder_ / "python").c_str(), 1);
  const std::string message = fault();
  EXPECT_NE(message.find("no 'tokenizers' module"), std::string::npos) << message;
  EXPECT_NE(message.find("pip install"), std::string::npos);
}

TEST(CacheFolder, FollowsTheEnvironment) {
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(default_cache_folder(), "/x/batchwright");
  ::setenv("BATCHWRIGHT_CACHE", "/y", 1);
  EXPECT_EQ(default_cache_folder(), "/y");
  ::unsetenv("BATCHWRIGHT_CACHE");
  ::unsetenv("XDG_CACHE_HOME");
  ::setenv("HOME", "/z", 1);
  EXPECT_EQ(default_cache_folder(), "/z/.cache/batchwright");
}

}  // namespace
}  // namespace batchwright::data
