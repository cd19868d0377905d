#include "engine/shared_sum.h"

#include <gtest/gtest.h>

#include <barrier>
#include <functional>
#include <thread>

namespace batchwright::engine {
namespace {

// Ranks as threads of this process, each with windows of its own.
class Ranks {
 public:
  explicit Ranks(std::size_t size)
      : size_(size), barrier_(static_cast<std::ptrdiff_t>(size)), posted_(size) {}

  void run(const std::function<void(int rank, SharedSum&)>& task, const std::vector<PeerIdentity>& peers) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < size_; ++rank) {
      threads.emplace_back([&, rank] {
        const auto sum = SharedSum::connect(static_cast<int>(rank), peers, [&](std::span<const double> own) {
          posted_[rank].assign(own.begin(), own.end());
          barrier_.arrive_and_wait();
          std::vector<double> all;
          for (const auto& values : posted_) all.insert(all.end(), values.begin(), values.end());
          barrier_.arrive_and_wait();
          return all;
        });
        ++(sum == nullptr ? refused_ : connected_);
        if (sum != nullptr) task(static_cast<int>(rank), *sum);
        barrier_.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::vector<PeerIdentity> here() const { return std::vector(size_, own_identity()); }

  std::atomic<int> refused_ = 0, connected_ = 0;

 private:
  std::size_t size_;
  std::barrier<> barrier_;
  std::vector<std::vector<double>> posted_;
};

std::vector<float> numbers(int rank, int round, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<float>((i * 7919 + static_cast<std::size_t>(rank * 31 + round)) % 1009) / 127.0f - 3.0f;
  }
  return values;
}

void expect_sums(std::size_t ranks, const std::vector<std::size_t>& counts) {
  Ranks world(ranks);
  std::vector<std::vector<std::vector<float>>> results(ranks);
  world.run(
      [&](int rank, SharedSum& sum) {
        auto& mine = results[static_cast<std::size_t>(rank)];
        for (std::size_t round = 0; round < counts.size(); ++round)
          mine.push_back(numbers(rank, static_cast<int>(round), counts[round]));
        for (auto& values : mine) {
          sum.begin(values.data(), static_cast<std::int64_t>(values.size()));
          if (rank % 2 == 0) sum.advance();  // the others only at the end
        }
        while (!sum.done()) {
          if (!sum.advance()) std::this_thread::yield();
        }
      },
      world.here());
  ASSERT_EQ(world.connected_, static_cast<int>(ranks));
  for (std::size_t round = 0; round < counts.size(); ++round) {
    std::vector<float> expected = numbers(0, static_cast<int>(round), counts[round]);
    for (std::size_t rank = 1; rank < ranks; ++rank) {
      const auto other = numbers(static_cast<int>(rank), static_cast<int>(round), counts[round]);
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
    }
    for (std::size_t rank = 0; rank < ranks; ++rank)
      EXPECT_EQ(results[rank][round], expected) << rank << ", " << round;
  }
}

TEST(SharedSum, EveryRankGetsTheSumInTheOrderOfRanks) {
  expect_sums(2, {1, 15, 17, 1000});
  expect_sums(3, {5, 262144, 262145, 3});
  expect_sums(4, {2, 0, 100000});
}

TEST(SharedSum, GoesRoundItsWindowManyTimes) { expect_sums(2, {9 * 262144 + 11, 20 * 262144, 7}); }

TEST(SharedSum, RefusesOnAllRanksWhereOneIsOnAnotherMachine) {
  Ranks world(3);
  auto peers = world.here();
  peers[1].process_space = "elsewhere";
  world.run([](int, SharedSum&) {}, peers);
  EXPECT_EQ(world.refused_, 3);
}

}  // namespace
}  // namespace batchwright::engine
