#include "data/text_rows.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "base/random.h"

namespace batchwright::data {
namespace {

TextRows json_lines(std::string_view content) { return parse_json_lines(content, "x.jsonl", {}); }
TextRows csv(std::string_view content) { return parse_delimited(content, "x.csv", {}, ','); }

struct Fault {
  std::string subject, message, hint;
};

Fault fault_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_TRUE(e.kind() == ErrorKind::InvalidInput || e.kind() == ErrorKind::Unsupported);
    return {e.subject(), e.message(), e.hint()};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

Fault json_fault(std::string_view content) {
  return fault_of([&] { json_lines(content); });
}
Fault csv_fault(std::string_view content) {
  return fault_of([&] { csv(content); });
}
bool says(const Fault& fault, std::string_view subject, std::string_view part) {
  return fault.subject == subject && fault.message.find(part) != std::string::npos;
}

TEST(JsonLines, ReadsTextsPairsAndLabels) {
  const TextRows rows =
      json_lines("{\"text\": \"caf\\u00e9\", \"label\": 1}\r\n\n  \n{\"label\": true, \"text\": \"\"}");
  ASSERT_EQ(rows.rows.size(), 2u);
  EXPECT_FALSE(rows.has_pairs);
  EXPECT_EQ(rows.rows[0].text, "caf\xc3\xa9");
  EXPECT_EQ(rows.rows[0].label, "1");
  EXPECT_EQ(rows.rows[1].label, "true");
  EXPECT_EQ(rows.rows[1].line, 4);
  const TextRows pairs = json_lines(R"({"text": "a", "text_pair": "b", "label": "yes", "more": [1]})");
  EXPECT_TRUE(pairs.has_pairs);
  EXPECT_EQ(pairs.rows[0].text_pair, "b");
}

TEST(JsonLines, ANulByteInATextSurvives) {
  EXPECT_EQ(json_lines(R"({"text": "a\u0000b", "label": 0})").rows[0].text, std::string("a\0b", 3));
}

TEST(JsonLines, OtherColumns) {
  const TextRows rows =
      parse_json_lines(R"({"review": "good", "stars": 5})", "x", {"review", "second", "stars"});
  EXPECT_EQ(rows.rows[0].text, "good");
  EXPECT_EQ(rows.rows[0].label, "5");
}

TEST(JsonLines, EveryFaultNamesItsLine) {
  const std::string good = "{\"text\": \"a\", \"label\": 0}\n";
  EXPECT_TRUE(says(json_fault(good + R"({"text": "b"})"), "x.jsonl:2", "without a label"));
  EXPECT_TRUE(says(json_fault(good + R"({"text": "b", "label": null})"), "x.jsonl:2", "without a label"));
  EXPECT_TRUE(says(json_fault(good + R"({"text": "b", "label": ""})"), "x.jsonl:2", "empty label"));
  EXPECT_TRUE(says(json_fault(good + R"({"text": "b", "label": 0.5})"), "x.jsonl:2", "0.5"));
  EXPECT_TRUE(says(json_fault(good + R"({"label": 1})"), "x.jsonl:2", "no \"text\""));
  EXPECT_TRUE(says(json_fault(good + R"({"text": 3, "label": 1})"), "x.jsonl:2", "number"));
  EXPECT_TRUE(says(json_fault(good + R"({"text": "b", "label": 1)"), "x.jsonl:2", "not valid JSON"));
  EXPECT_TRUE(says(json_fault(good + R"(["b", 1])"), "x.jsonl:2", "array"));
  EXPECT_TRUE(
      says(json_fault(good + std::string("{\"text\": \"a\0\", \"label\": 1}", 26)), "x.jsonl:2", "JSON"));
  EXPECT_TRUE(says(json_fault(good + R"({"text": "\ud800", "label": 1})"), "x.jsonl:2", "JSON"));
  EXPECT_TRUE(
      says(json_fault(good + R"({"text": "b", "text_pair": "c", "label": 1})"), "x.jsonl:2", "text_pair"));
  EXPECT_NE(json_fault(R"({"texts": "b", "label": 1})").hint.find("'texts'"), std::string::npos);
}

TEST(Csv, QuotesLineBreaksAndLineNumbers) {
  const TextRows rows =
      csv("label,text\r\n"
          "1,\"a \"\"quoted\"\" word, and\r\na second line\"\r\n"
          "\r\n"
          "0,plain 5\" disk\n"
          "2,\"\"");
  ASSERT_EQ(rows.rows.size(), 3u);
  EXPECT_EQ(rows.rows[0].text, "a \"quoted\" word, and\r\na second line");
  EXPECT_EQ(rows.rows[1].text, "plain 5\" disk");
  EXPECT_EQ(rows.rows[1].line, 5);
  EXPECT_EQ(rows.rows[2].text, "");
  EXPECT_EQ(rows.rows[2].label, "2");
}

TEST(Csv, TabsAndPairs) {
  const TextRows rows = parse_delimited("text\ttext_pair\tlabel\na, b\tc\tyes\n", "x.tsv", {}, '\t');
  EXPECT_TRUE(rows.has_pairs);
  EXPECT_EQ(rows.rows[0].text, "a, b");
  EXPECT_EQ(rows.rows[0].text_pair, "c");
}

TEST(Csv, EveryFaultNamesItsLine) {
  EXPECT_TRUE(says(csv_fault("text,label\na,1\nb,\n"), "x.csv:3", "without a label"));
  EXPECT_TRUE(says(csv_fault("text,label\na,1\nb\n"), "x.csv:3", "1 fields; the header has 2"));
  EXPECT_TRUE(says(csv_fault("text,label\na,b,1\n"), "x.csv:2", "3 fields"));
  EXPECT_TRUE(says(csv_fault("text,label,text\na,1,b\n"), "x.csv:1", "'text' twice"));
  EXPECT_TRUE(says(csv_fault("text,class\na,1\n"), "x.csv:1", "no column 'label'"));
  EXPECT_TRUE(says(csv_fault("text,label\n\"two\nlines\",1\n\"open,1\n"), "x.csv:4", "never closed"));
  EXPECT_TRUE(says(csv_fault("text,label\n\"a\"b,1\n"), "x.csv:2", "after a closing quote"));
  EXPECT_NE(csv_fault("sentence,class\na,1\n").hint.find("sentence, class"), std::string::npos);
}

class TextFiles : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  TextRows read(const std::string& name, std::string_view content) {
    write_file_atomic(folder_ / name, content);
    return read_text_rows(folder_ / name, {});
  }
  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("batchwright_text_rows_" + std::to_string(::getpid()));
};

TEST_F(TextFiles, TheExtensionDecides) {
  EXPECT_EQ(read("a.JSONL", "\xef\xbb\xbf{\"text\": \"a\", \"label\": 0}").rows.size(), 1u);
  EXPECT_EQ(read("a.csv", "\xef\xbb\xbftext,label\na,0\n").rows.size(), 1u);
  EXPECT_EQ(read("a.tsv", "text\tlabel\na\t0\n").rows.size(), 1u);
  const Fault fault = fault_of([&] { read("a.parquet", "PAR1"); });
  EXPECT_NE(fault.message.find(".parquet"), std::string::npos);
  EXPECT_NE(fault.hint.find(".jsonl"), std::string::npos);
}

TEST_F(TextFiles, EmptyFilesAndBadBytes) {
  EXPECT_EQ(fault_of([&] { read("e.jsonl", ""); }).message, "is empty");
  EXPECT_EQ(fault_of([&] { read("e.jsonl", "\n \n"); }).message, "has no rows");
  EXPECT_EQ(fault_of([&] { read("e.csv", "text,label\n"); }).message, "has no rows");
  const Fault fault = fault_of([&] { read("b.csv", "text,label\na,1\ncaf\xe9,0\n"); });
  EXPECT_EQ(fault.subject, (folder_ / "b.csv").string() + ":3");
  EXPECT_NE(fault.message.find("0xe9"), std::string::npos);
  EXPECT_THROW(read_text_rows(folder_ / "absent.csv", {}), Error);
  EXPECT_THROW(read_text_rows(folder_, {}), Error);
}

// Whatever the bytes, the readers return rows or an Error that names a line.
TEST(Readers, RandomTextNeverCrashes) {
  const std::vector<std::string> pieces = {"\"",
                                           "\"\"",
                                           ",",
                                           "\n",
                                           "\r\n",
                                           "\r",
                                           "text",
                                           "label",
                                           "1",
                                           "{",
                                           "}",
                                           ":",
                                           "[",
                                           "\\u00",
                                           "\\",
                                           "\xc3\xa9",
                                           "\t",
                                           " ",
                                           std::string("\0", 1)};
  RandomStream random(5, RandomUse::Test);
  int read = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string content = trial % 2 == 0 ? "text,label\n" : "{\"text\":\"a\",\"label\":1}\n";
    const std::uint64_t count = random.below(30);
    for (std::uint64_t i = 0; i < count; ++i) content += pieces[random.below(pieces.size())];
    try {
      const TextRows rows = trial % 2 == 0 ? csv(content) : json_lines(content);
      for (const TextRow& row : rows.rows) ASSERT_FALSE(row.label.empty());
      ++read;
    } catch (const Error& e) {
      ASSERT_NE(e.subject().find(':'), std::string::npos);
    }
  }
  EXPECT_GT(read, 100);
}

// What a correct CSV writer writes comes back byte for byte.
TEST(Readers, CsvComesBackAsWritten) {
  const std::vector<std::string> pieces = {"\"", ",", "\n", "\r\n", "a", " ", "\xc3\xa9"};
  RandomStream random(6, RandomUse::Test);
  const auto quoted = [](const std::string& field) {
    std::string out = "\"";
    for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
  };
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::string> texts(1 + random.below(5));
    std::string content = "text,label\n";
    for (std::string& text : texts) {
      const std::uint64_t count = random.below(8);
      for (std::uint64_t i = 0; i < count; ++i) text += pieces[random.below(pieces.size())];
      content += quoted(text) + ",x\n";
    }
    const TextRows rows = csv(content);
    ASSERT_EQ(rows.rows.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) ASSERT_EQ(rows.rows[i].text, texts[i]);
  }
}

}  // namespace
}  // namespace batchwright::data
