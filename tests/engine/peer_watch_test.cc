#include "engine/peer_watch.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>

namespace batchwright::engine {
namespace {

using std::chrono::milliseconds;

// Two ranks' watches in one process, on a store in memory, in a hurry.
class Watches : public ::testing::Test {
 protected:
  Watches() {
    meeting.store = c10::make_intrusive<c10d::HashStore>();
    for (long rank = 0; rank < 2; ++rank) meeting.peers.push_back({"here", "nowhere", 100 + rank});
  }
  std::unique_ptr<PeerWatch> watch(int rank) {
    World world;
    world.rank = rank;
    world.size = 2;
    return std::make_unique<PeerWatch>(meeting, world, times);
  }
  // The verdict of a watch within ten seconds; empty when it has none.
  static std::string wait_for_verdict(const PeerWatch& watch) {
    for (int i = 0; i < 1000; ++i) {
      if (const auto verdict = watch.verdict()) return *verdict;
      std::this_thread::sleep_for(milliseconds(10));
    }
    return "";
  }

  Rendezvous meeting;
  WatchTimes times{.beat = milliseconds(10),
                   .silence = milliseconds(300),
                   .first_progress = milliseconds(60000),
                   .least_progress = milliseconds(200),
                   .slowest_factor = 2};
};

TEST_F(Watches, ARankThatNeverSpeaksIsNamed) {
  const auto leader = watch(0);
  EXPECT_NE(wait_for_verdict(*leader).find("rank 1 (process 101 on host here) has given no sign of life"),
            std::string::npos);
}

TEST_F(Watches, ARankThatStandsStillSaysSoAndTheOthersHearIt) {
  const auto leader = watch(0), other = watch(1);
  leader->set(PeerWatch::Activity::Waiting);
  other->set(PeerWatch::Activity::Working);
  other->progress();  // and no more
  EXPECT_NE(wait_for_verdict(*leader).find("rank 1 (process 101 on host here): has made no progress"),
            std::string::npos);
}

TEST_F(Watches, ARankWithoutProgressYetOrBusyWithFilesIsLeftAlone) {
  const auto leader = watch(0), other = watch(1);
  leader->set(PeerWatch::Activity::Working);
  other->progress();
  other->set(PeerWatch::Activity::Busy);
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_FALSE(leader->verdict().has_value());
  EXPECT_FALSE(other->verdict().has_value());
}

TEST_F(Watches, WhenAllWaitAndNothingMovesTheConnectionIsBlamed) {
  const auto leader = watch(0), other = watch(1);
  leader->set(PeerWatch::Activity::Waiting);
  other->set(PeerWatch::Activity::Waiting);
  EXPECT_NE(wait_for_verdict(*other).find("a connection between them is broken"), std::string::npos);
}

TEST_F(Watches, WhoFailsTellsTheOthersWhy) {
  const auto leader = watch(0), other = watch(1);
  other->fail("out of memory");
  EXPECT_EQ(wait_for_verdict(*leader), "rank 1 (process 101 on host here): out of memory");
}

TEST_F(Watches, WhoLeavesIsNotMissed) {
  const auto leader = watch(0);
  watch(1)->leave();
  std::this_thread::sleep_for(milliseconds(600));
  EXPECT_FALSE(leader->verdict().has_value());
}

TEST(PeerIdentity, KnowsAProcessThatEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  // Not waited for, so it stays as a zombie: gone all the same.
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  PeerIdentity identity = own_identity();
  EXPECT_FALSE(identity.is_gone());
  identity.process_id = child;
  EXPECT_TRUE(identity.is_gone());
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(identity.is_gone());
  identity.process_space = "of another machine";
  EXPECT_FALSE(identity.is_gone());
}

}  // namespace
}  // namespace batchwright::engine
