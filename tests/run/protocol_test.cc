#include "run/protocol.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.h"
#include "base/random.h"

namespace batchwright::run {
namespace {

TEST(Protocol, EveryMessageReadsBackAsItWasWritten) {
  StepReport step;
  step.step = 3;
  step.micro_steps = 4;
  step.examples = 32;
  step.tokens = 900;
  step.padded_tokens = 1024;
  step.seconds = 0.125;
  step.phases = {{"forward", 0.05}, {"backward", 0.07}};
  step.loss = 0.5;
  step.peak_bytes = 1ll << 40;
  step.rank = 1;
  step.world_size = 2;
  RunSplit cut;
  cut.micro_tokens = 2048;
  cut.steps = 5;
  cut.batch = "longest";
  const Message messages[] = {Hello{1, "engine", "cpu", true, 77, 0, 1},
                              step,
                              Failed{"out_of_memory", "needs 3 more bytes", 12, 0, 1},
                              Done{Json{{"accuracy", 0.5}}, 0, 1},
                              Note{"loading", 0.25},
                              RunSplit{8, 4, 5, 10, "sampled", "packed", "none", 0},
                              cut,
                              Stop{}};
  for (const Message& message : messages) {
    const std::string line = to_line(message);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const Message back = parse_message(line);
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(to_line(back), line);
  }
}

TEST(Protocol, UnknownFieldsAreIgnoredAndUnknownValuesAreNull) {
  const Message message = parse_message(
      R"({"type":"step","step":1,"seconds":0.5,"loss":null,"colour":"green","phases":{"input":null}})");
  const auto& step = std::get<StepReport>(message);
  EXPECT_FALSE(step.loss.has_value());
  EXPECT_TRUE(step.phases.empty());
  StepReport overflowed;
  overflowed.step = 1;
  overflowed.loss = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(std::get<StepReport>(parse_message(to_line(overflowed))).loss.has_value());
}

TEST(Protocol, AHelloOfAnotherVersionIsStillAHello) {
  const Message message = parse_message(R"({"type":"hello","protocol":7,"engine":{"name":"later"}})");
  EXPECT_EQ(std::get<Hello>(message).protocol, 7);
}

TEST(Protocol, MalformedMessagesAreErrorsNeverCrashes) {
  for (const char* wrong :
       {"", "garbage", "[]", "{}", R"({"type":"dance"})", R"({"type":"step"})",
        R"({"type":"step","step":0,"seconds":1})", R"({"type":"step","step":1,"seconds":-1})",
        R"({"type":"step","step":1,"seconds":1,"phases":[1]})",
        R"({"type":"step","step":1,"seconds":1,"rank":5})",
        R"({"type":"split","micro":0,"accum":4,"steps":5})", R"({"type":"split","micro":8,"accum":4})",
        R"({"type":"split","micro":8,"accum":4,"steps":5,"batch":"random"})", R"({"type":7})"}) {
    EXPECT_THROW(parse_message(wrong), Error) << wrong;
  }
  const std::string valid = R"({"type":"step","step":1,"seconds":0.5,"phases":{"input":0.1},"loss":2.5})";
  RandomStream random(0, RandomUse::Test);
  for (int round = 0; round < 5000; ++round) {
    std::string changed = valid;
    for (int flips = 0; flips < 3; ++flips) {
      changed[random.below(changed.size())] = static_cast<char>(random.below(256));
    }
    try {
      parse_message(changed);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace batchwright::run
