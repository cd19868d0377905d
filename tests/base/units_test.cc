#include "base/units.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchwright {
namespace {

TEST(ParseBytes, ReadsBinaryAndDecimalUnits) {
  EXPECT_EQ(parse_bytes("900MiB", "--memory-limit"), 900ll << 20);
  EXPECT_EQ(parse_bytes("1.5GB", "--memory-limit"), 1500000000);
  EXPECT_EQ(parse_bytes("943718400", "--memory-limit"), 900ll << 20);
  EXPECT_EQ(parse_bytes("0", "--memory-limit"), 0);
  EXPECT_EQ(parse_bytes("2 GiB", "--memory-limit"), 2ll << 30);
}

TEST(ParseBytes, RefusesWhatIsNotASizeAndNamesTheOption) {
  for (const char* wrong :
       {"", "MiB", "-1MiB", "12XB", "1e9", "nan", "inf", "1.2.3GB", "99999999999TiB", "12"}) {
    try {
      parse_bytes(wrong, "--memory-limit");
      ADD_FAILURE() << wrong << " was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Usage);
      EXPECT_EQ(e.subject(), "--memory-limit");
    }
  }
}

TEST(ParseSeconds, ReadsUnits) {
  EXPECT_DOUBLE_EQ(parse_seconds("60s", "--budget"), 60);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5h", "--budget"), 5400);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms", "--budget"), 0.5);
  EXPECT_THROW(parse_seconds("fast", "--budget"), Error);
}

TEST(Format, KeepsThreeDigitsAndAUnit) {
  EXPECT_EQ(format_bytes(812ll << 20), "812 MiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_seconds(0.2384), "238 ms");
  EXPECT_EQ(format_seconds(41.23), "41.2 s");
  EXPECT_EQ(format_seconds(200), "3 min 20 s");
  EXPECT_EQ(format_seconds(7500), "2 h 05 min");
  EXPECT_EQ(format_seconds_interval(0.238, 0.231, 0.246), "238 ms [231, 246]");
  EXPECT_EQ(format_seconds_interval(0.971, 0.712, 1.241), "971 ms [712, 1241]");
  EXPECT_EQ(format_seconds_interval(0, 0, 733e-6), "0.00 us [0.00, 733]");
  EXPECT_EQ(format_seconds_interval(-1e-10, -89.5e-6, 367e-6), "0.00 us [-89.5, 367]");
  EXPECT_EQ(format_seconds_interval(2e-12, -0.481, 0.561), "0.00 ms [-481, 561]");
  EXPECT_EQ(format_percent(0.172), "17.2 %");
}

}  // namespace
}  // namespace batchwright
