#include "base/json.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace batchwright {
namespace {

TEST(ParseJson, RefusesMalformedAndDeepTextWithTheSubject) {
  for (const std::string& wrong : {std::string("{"), std::string("{\"a\":1} x"), std::string(100000, '['),
                                   std::string("\xff"), std::string()}) {
    try {
      parse_json(wrong, "config.json");
      ADD_FAILURE() << wrong.substr(0, 20);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::InvalidInput);
      EXPECT_EQ(e.subject(), "config.json");
    }
  }
}

TEST(JsonFields, NamesTheFieldThatIsWrong) {
  const Json object = parse_json(
      R"({"rank": 16, "half": 0.5, "name": "x", "none": null, "huge": 18446744073709551615})", "test");
  const JsonFields fields(object, "request");
  EXPECT_EQ(fields.integer("rank", 1, 64), 16);
  EXPECT_EQ(fields.integer("none", 1, 64, 7), 7);
  EXPECT_DOUBLE_EQ(fields.number("half", 0, 1), 0.5);
  EXPECT_FALSE(fields.maybe_integer("absent", 0, 1).has_value());
  EXPECT_THROW(fields.integer("half", 0, 1), Error);
  EXPECT_THROW(fields.integer("rank", 32, 64), Error);
  EXPECT_THROW(fields.integer("huge", 0, 64), Error);
  EXPECT_THROW(fields.text("rank"), Error);
  try {
    fields.text("absent");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "request: \"absent\" is missing");
  }
}

TEST(JsonFields, SuggestsTheNearestKnownField) {
  const Json object = parse_json(R"({"efective_batch": 4})", "test");
  try {
    JsonFields(object, "request").reject_unknown({"model", "effective_batch"});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.hint(), "Did you mean \"effective_batch\"?");
  }
}

}  // namespace
}  // namespace batchwright
