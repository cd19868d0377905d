#include "data/token_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/random.h"
#include "data/token_bytes.h"

namespace batchwright::data {
namespace {

class TokenFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // Without a sync, unlike write_file_atomic: thousands of these files are written.
  void write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

  TokenFile open(const std::string& bytes) {
    write(bytes);
    return TokenFile::open(path_);
  }
  // The message of the error that opening these bytes gives; "" when they open.
  std::string fault(const std::string& bytes) {
    try {
      open(bytes);
      return "";
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()), 2);
      EXPECT_EQ(e.subject(), path_.string());
      return e.message();
    }
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("batchwright_token_file_test_" + std::to_string(::getpid()) + ".bin");
};

TEST_F(TokenFileTest, ReadsRowsAndLabels) {
  const TokenFile file = open(test::TokenRows{}.bytes());
  EXPECT_EQ(file.rows(), 3u);
  EXPECT_EQ(file.tokens(), 10);
  EXPECT_EQ(file.length(1), 5);
  EXPECT_EQ(std::vector<std::int32_t>(file.ids(1).begin(), file.ids(1).end()),
            (std::vector<std::int32_t>{101, 8, 9, 10, 102}));
  EXPECT_EQ(file.type_ids(2).size(), 2u);
  EXPECT_EQ(file.label(1), 1);
  EXPECT_EQ(file.label_names(), (std::vector<std::string>{"bad", "good"}));
  EXPECT_EQ(file.max_length(), 128);
  EXPECT_EQ(file.largest_id(), 102);
  EXPECT_EQ(file.content_id(), "abc");
}

TEST_F(TokenFileTest, NamesWhatIsWrong) {
  EXPECT_EQ(fault(""), "is not a token file");
  EXPECT_EQ(fault("BWTOKENS"), "is not a token file");
  EXPECT_EQ(fault("{\"text\": \"a data file instead\", \"label\": 0}"), "is not a token file");
  const auto changed = [](Json changes) { return test::TokenRows{.header_changes = changes}.bytes(); };
  EXPECT_NE(fault(changed({{"rows", 1ll << 60}})).find("rows"), std::string::npos);
  EXPECT_NE(fault(changed({{"tokens", 1ll << 60}})).find("tokens"), std::string::npos);
  EXPECT_NE(fault(changed({{"rows", 1ll << 31}})).find("cut short"), std::string::npos);
  EXPECT_NE(fault(changed({{"rows", 0}})).find("rows"), std::string::npos);
  EXPECT_NE(fault(changed({{"tokens", 9}})).find("do not span"), std::string::npos);
  EXPECT_NE(fault(changed({{"max_length", 4}})).find("maximum of 4"), std::string::npos);
  EXPECT_NE(fault(changed({{"label_names", {"only"}}})).find("label 1 at row 1"), std::string::npos);
  EXPECT_NE(fault(changed({{"arrays", {{"ids", 1 << 30}}}})).find("ids"), std::string::npos);
  EXPECT_NE(fault(changed({{"arrays", {{"ids", 8}}}})).find("not a place"), std::string::npos);
  EXPECT_NE(fault(changed({{"arrays", nullptr}})).find("arrays"), std::string::npos);
  EXPECT_NE(fault(test::TokenRows{.ids = {{1}, {}, {2}}}.bytes()).find("do not rise at row 1"),
            std::string::npos);
  EXPECT_NE(fault(test::TokenRows{.ids = {{1}, {-5}, {2}}}.bytes()).find("negative"), std::string::npos);
  EXPECT_NE(fault(test::TokenRows{.labels = {0, -1, 0}}.bytes()).find("label -1"), std::string::npos);
}

TEST_F(TokenFileTest, AnotherTaskOrFormatIsNamed) {
  const auto changed = [](Json changes) { return test::TokenRows{.header_changes = changes}.bytes(); };
  EXPECT_NE(fault(changed({{"task", "sorting"}})).find("'sorting'"), std::string::npos);
  EXPECT_NE(fault(changed({{"task", "token-classification"}})).find("token_labels"), std::string::npos);
  EXPECT_NE(fault(changed({{"task", "question-answering"}})).find("questions"), std::string::npos);
  std::string old = test::TokenRows{}.bytes();
  old[8] = 1;
  EXPECT_NE(fault(old).find("format version 1; this program reads 2"), std::string::npos);
}

TEST_F(TokenFileTest, EveryTruncationIsRefused) {
  const std::string whole = test::TokenRows{}.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(fault(whole.substr(0, size)), "") << size;
}

TEST_F(TokenFileTest, DamagedBytesNeverCrash) {
  const std::string whole = test::TokenRows{}.bytes();
  RandomStream random(11, RandomUse::Test);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = whole;
    for (int i = 0; i < 3; ++i) damaged[random.below(damaged.size())] = static_cast<char>(random.next());
    write(damaged);
    try {
      const TokenFile file = TokenFile::open(path_);
      // What opens must be usable: read all of it.
      std::int64_t total = 0;
      for (std::uint32_t row = 0; row < file.rows(); ++row) {
        for (const std::int32_t id : file.ids(row)) ASSERT_GE(id, 0);
        ASSERT_LT(static_cast<std::size_t>(file.label(row)), file.label_names().size());
        total += file.length(row);
      }
      ASSERT_EQ(total, file.tokens());
    } catch (const Error&) {
    }
  }
}

TEST_F(TokenFileTest, MissingIsNotFound) {
  try {
    TokenFile::open(path_);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotFound);
  }
}

}  // namespace
}  // namespace batchwright::data
