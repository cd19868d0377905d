#include "data/documents.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "data/task.h"

namespace batchwright::data {
namespace {

std::string documents_fault(std::string_view content) {
  try {
    parse_documents(content, "x.jsonl", {});
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Documents, PromptsAndTexts) {
  const Documents prompts =
      parse_documents("{\"prompt\": \"2+2=\", \"completion\": \"4\"}\n\n", "x.jsonl", {});
  ASSERT_EQ(prompts.rows.size(), 1u);
  EXPECT_TRUE(prompts.rows[0].has_prompt);
  EXPECT_EQ(prompts.rows[0].prompt, "2+2=");
  EXPECT_EQ(prompts.rows[0].text, "4");
  EXPECT_FALSE(parse_documents("{\"text\": \"hello\"}", "x.jsonl", {}).rows[0].has_prompt);
}

TEST(Documents, PlainTextKeepsItsLineBreaks) {
  const Documents plain = parse_plain_text("one\n\ntwo");
  ASSERT_EQ(plain.rows.size(), 3u);
  EXPECT_EQ(plain.rows[0].text, "one\n");
  EXPECT_EQ(plain.rows[1].text, "\n");
  EXPECT_EQ(plain.rows[2].text, "two");
  EXPECT_EQ(plain.rows[2].line, 3);
}

TEST(Documents, FaultsHaveALine) {
  EXPECT_NE(documents_fault("{\"prompt\": \"a\", \"completion\": \"b\"}\n{\"text\": \"c\"}\n")
                .find("x.jsonl:2: has no prompt"),
            std::string::npos);
  EXPECT_NE(documents_fault("{\"prompt\": \"a\"}\n").find("x.jsonl:1: has no \"completion\""),
            std::string::npos);
  EXPECT_NE(documents_fault("{\"prompt\": \"a\", \"completion\": \"\"}\n").find("empty completion"),
            std::string::npos);
  EXPECT_NE(documents_fault("{\"text\": \"a\", \"text\": \"b\"}\n").find("x.jsonl:1: names \"text\" twice"),
            std::string::npos);
  EXPECT_NE(documents_fault("[]\n").find("is array"), std::string::npos);
}

class DeducedTask : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  Task of(const std::string& name, const std::string& content) {
    write_file_atomic(folder_ / name, content);
    return deduce_task(folder_ / name, {});
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("batchwright_deduced_" + std::to_string(::getpid()));
};

TEST_F(DeducedTask, FollowsTheEndingOrTheFirstRow) {
  EXPECT_EQ(of("a.csv", "text,label\n"), Task::SequenceClassification);
  EXPECT_EQ(of("a.conll", "EU B-ORG\n"), Task::TokenClassification);
  EXPECT_EQ(of("a.txt", "hello\n"), Task::CausalLm);
  EXPECT_EQ(of("a.jsonl", "{\"text\": \"a\", \"label\": 1}\n"), Task::SequenceClassification);
  EXPECT_EQ(of("b.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n"), Task::CausalLm);
  EXPECT_EQ(of("c.jsonl", "{\"text\": \"a\"}\n"), Task::CausalLm);
  EXPECT_EQ(of("a.json", "{\"version\": \"1.1\", \"data\": []}"), Task::QuestionAnswering);
  EXPECT_EQ(of("b.json", "{\n  \"data\": []\n}\n"), Task::QuestionAnswering);
  EXPECT_EQ(of("c.json", "{\"text\": \"a\", \"label\": 1}\n{\"text\""), Task::SequenceClassification);
  EXPECT_EQ(of("d.json", "{ broken"), Task::SequenceClassification);  // the reader of rows names the fault
  EXPECT_THROW(of("a.xlsx", "PK"), Error);
}

TEST(TaskNames, LongAndShort) {
  EXPECT_EQ(parse_task("qa", "--task"), Task::QuestionAnswering);
  EXPECT_EQ(task_name(Task::QuestionAnswering), "question-answering");
  EXPECT_EQ(parse_task(task_name(Task::CausalLm), "--task"), Task::CausalLm);
  EXPECT_THROW(parse_task("ner", "--task"), Error);
}

}  // namespace
}  // namespace batchwright::data
