#include "base/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <set>
#include <stdexcept>

namespace batchwright {
namespace {

TEST(Workers, EveryThreadRunsEveryTaskOnceAndItsWritesAreSeenAfterwards) {
  Workers workers(4);
  ASSERT_EQ(workers.size(), 4);
  std::vector<int> counts(4, 0);  // plain ints: the thread sanitizer sees whether run() orders the accesses
  for (int round = 1; round <= 500; ++round) {
    workers.run([&](int thread) { ++counts[static_cast<std::size_t>(thread)]; });
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), 0), 4 * round);
  }
}

TEST(Workers, TheCallerIsThreadZero) {
  Workers workers(3);
  std::vector<std::thread::id> ids(3);
  workers.run([&](int thread) { ids[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 3u);
}

TEST(Workers, AtStartRunsOnceOnEveryThread) {
  std::atomic<int> started = 0;
  {
    Workers workers(3, [&] { ++started; });
    workers.run([](int) {});
    workers.run([](int) {});
  }
  EXPECT_EQ(started, 3);
}

TEST(Workers, OneFailureReachesTheCallerAfterAllHaveEnded) {
  Workers workers(3);
  std::atomic<int> ended = 0;
  const auto failing = [&](int thread) {
    ++ended;
    if (thread == 2) throw std::runtime_error("thread 2");
  };
  EXPECT_THROW(workers.run(failing), std::runtime_error);
  EXPECT_EQ(ended, 3);
  workers.run([&](int) { ++ended; });  // and the team goes on
  EXPECT_EQ(ended, 6);
}

TEST(Workers, OneThreadIsTheCallerAlone) {
  Workers workers(1);
  int runs = 0;
  workers.run([&](int thread) { runs += 1 + thread; });
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace batchwright
