#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/error.h"

namespace batchwright {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() /
        ("batchwright_files_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

TEST_F(Files, AtomicWriteReplacesAndLeavesNothingBeside) {
  write_file_atomic(folder_ / "deep" / "a.json", "one");
  write_file_atomic(folder_ / "deep" / "a.json", "two");
  EXPECT_EQ(read_file(folder_ / "deep" / "a.json"), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ / "deep"), {}), 1);
}

TEST_F(Files, TornFilesAreRemovedAndNothingElse) {
  write_file_atomic(folder_ / "a.json", "one");
  write_file_atomic(folder_ / "a.json.123.partial", "on");
  remove_torn_files(folder_);
  remove_torn_files(folder_ / "absent");
  EXPECT_EQ(read_file(folder_ / "a.json"), "one");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
}

TEST_F(Files, APipeIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile(folder_ / "pipe"), Error);
}

TEST_F(Files, ASampledHashSeesSizeBeginningMiddleAndEnd) {
  const std::filesystem::path file = folder_ / "weights";
  std::string content(3 << 20, 'w');
  const auto hash = [&] {
    write_file_atomic(file, content);
    return sampled_hash(file);
  };
  const std::string first = hash();
  EXPECT_EQ(hash(), first);
  for (const std::size_t at : {std::size_t{0}, content.size() / 63 * 31 + 5, content.size() - 64}) {
    content[at] = 'x';
    EXPECT_NE(hash(), first) << at;
    content[at] = 'w';
  }
  content += 'w';
  EXPECT_NE(hash(), first);
  content = "short";
  const std::string small = hash();
  content = "shorT";
  EXPECT_NE(hash(), small);
}

TEST_F(Files, AppendedLinesAddUp) {
  append_line_synced(folder_ / "trials.jsonl", "{\"a\":1}");
  append_line_synced(folder_ / "trials.jsonl", "{\"a\":2}");
  EXPECT_EQ(read_file(folder_ / "trials.jsonl"), "{\"a\":1}\n{\"a\":2}\n");
}

TEST_F(Files, MissingFilesFoldersAndOversizeAreNamed) {
  EXPECT_THROW(read_file(folder_ / "absent"), Error);
  EXPECT_THROW(read_file(folder_), Error);
  EXPECT_THROW(MappedFile(folder_ / "absent"), Error);
  write_file_atomic(folder_ / "big", std::string(100, 'x'));
  EXPECT_THROW(read_file(folder_ / "big", 99), Error);
  EXPECT_EQ(MappedFile(folder_ / "big").bytes().size(), 100u);
  EXPECT_THROW(write_file_atomic(folder_ / "big" / "child", "x"), Error);
}

TEST(Utf8, FindsTheFirstBadByte) {
  EXPECT_EQ(invalid_utf8_at("plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"), std::string_view::npos);
  EXPECT_EQ(invalid_utf8_at("ab\xff"), 2u);
  EXPECT_EQ(invalid_utf8_at("a\xc0\xaf"), 1u);         // overlong
  EXPECT_EQ(invalid_utf8_at("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(invalid_utf8_at("abc\xe2\x82"), 3u);       // cut short
  EXPECT_EQ(invalid_utf8_at("\xf5\x80\x80\x80"), 0u);  // past U+10FFFF
}

}  // namespace
}  // namespace batchwright
