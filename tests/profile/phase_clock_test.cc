#include "profile/phase_clock.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "profile/trace.h"

namespace batchwright::profile {
namespace {

TEST(PhaseClock, EveryMomentBelongsToOnePhase) {
  PhaseClock clock;
  std::vector<PhaseSpan> spans;
  clock.record_into(&spans);
  const auto before = std::chrono::steady_clock::now();
  clock.start();
  for (int i = 0; i < 1000; ++i) {
    clock.enter(Phase::Forward);
    clock.enter(Phase::Backward);
  }
  const PhaseSeconds seconds = clock.stop();
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - before;
  double total = 0;
  for (const double s : seconds) total += s;
  EXPECT_GT(seconds[static_cast<std::size_t>(Phase::Forward)], 0);
  EXPECT_EQ(seconds[static_cast<std::size_t>(Phase::Loss)], 0);
  EXPECT_LE(total, wall.count());
  ASSERT_EQ(spans.size(), 2001u);
  for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_EQ(spans[i].begin, spans[i - 1].end);
}

TEST(Trace, IsWhatATraceViewerReads) {
  Trace trace;
  const auto now = std::chrono::steady_clock::now();
  const auto later = now + std::chrono::milliseconds(3);
  trace.add_step(7, now, later);
  trace.add(1, {Phase::Forward, now, later});
  trace.add(1, {Phase::Residual, now, later});
  const Json document = parse_json(trace.to_chrome_json(), "trace");
  std::vector<std::string> names;
  for (const Json& event : document.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    names.push_back(event.at("name"));
    EXPECT_NEAR(event.at("dur").get<double>(), 3000, 1e-6);
    EXPECT_GE(event.at("ts").get<double>(), 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"step 7", "forward"}));
}

}  // namespace
}  // namespace batchwright::profile
