#include "base/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace batchwright {
namespace {

TEST(Quantile, InterpolatesBetweenOrderStatistics) {
  const std::vector<double> sample = {4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(sample), 2.5);
  EXPECT_DOUBLE_EQ(quantile(sample, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(quantile(sample, 1), 4);
  EXPECT_THROW(median({}), Error);
}

// Table values of Student's t (two-sided 95 % and 99 %), to the digits that tables print.
TEST(StudentT, MatchesThePrintedTable) {
  EXPECT_NEAR(student_t_quantile(0.975, 1), 12.706, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 2), 4.303, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 4), 2.776, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 10), 2.228, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.995, 5), 4.032, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.975, 1000), 1.962, 5e-4);
  EXPECT_NEAR(student_t_quantile(0.025, 4), -2.776, 5e-4);
  EXPECT_NEAR(student_t_cdf(0, 3), 0.5, 1e-12);
  EXPECT_NEAR(student_t_cdf(1, 1), 0.75, 1e-12);  // Cauchy: 1/2 + atan(1)/pi
}

TEST(MeanInterval, OneValueHasNone) {
  const std::vector<double> one = {3}, five = {1, 2, 3, 4, 5};
  EXPECT_TRUE(std::isinf(mean_interval(one).high));
  EXPECT_NEAR(mean_interval(five).low, 3 - 2.776445 * std::sqrt(2.5 / 5), 1e-5);
}

TEST(MedianInterval, UsesTheOrderStatisticsOfTheBinomial) {
  std::vector<double> sample;
  for (int i = 1; i <= 10; ++i) sample.push_back(i);
  // Ten values: the second and the ninth, coverage 1 - 2 (1 + 10) / 1024 = 97.9 %.
  EXPECT_DOUBLE_EQ(median_interval(sample).low, 2);
  EXPECT_DOUBLE_EQ(median_interval(sample).high, 9);
  EXPECT_DOUBLE_EQ(median_interval(sample).mid, 5.5);
}

TEST(PairedRatioInterval, MatchesWilcoxonsExactLimits) {
  // Eight log ratios of 1..8 hundredths: P(W <= 3) = 5 / 256, so the 4th smallest and largest Walsh averages.
  std::vector<double> numerator, denominator;
  for (int i = 1; i <= 8; ++i) {
    denominator.push_back(i);
    numerator.push_back(i * std::exp(0.01 * i));
  }
  const Interval ratio = paired_ratio_interval(numerator, denominator);
  EXPECT_NEAR(std::log(ratio.mid), 0.045, 1e-12);
  EXPECT_NEAR(std::log(ratio.low), 0.02, 1e-12);   // 0.01, 0.015, 0.02, 0.02
  EXPECT_NEAR(std::log(ratio.high), 0.07, 1e-12);  // 0.08, 0.075, 0.07, 0.07
}

TEST(PairedRatioInterval, RemovesWhatBothShare) {
  // Windows differ by a factor of four; the ratio is constant.
  const std::vector<double> slow = {1.2, 2.4, 4.8}, fast = {1, 2, 4};
  const Interval ratio = paired_ratio_interval(slow, fast);
  EXPECT_NEAR(ratio.low, 1.2, 1e-9);
  EXPECT_NEAR(ratio.high, 1.2, 1e-9);
}

TEST(PairedRatioInterval, OneDisturbedPairDoesNotMoveIt) {
  std::vector<double> slow(12, 1.1), fast(12, 1.0);
  for (std::size_t i = 0; i < slow.size(); ++i) slow[i] += 0.001 * static_cast<double>(i % 3);
  slow[5] = 40;
  const Interval ratio = paired_ratio_interval(slow, fast);
  EXPECT_NEAR(ratio.mid, 1.101, 2e-3);
  EXPECT_LT(ratio.high, 1.12);
}

TEST(PairedRatioInterval, RefusesWhatIsNotAPair) {
  const std::vector<double> two = {1, 2}, one = {1}, zero = {0, 1};
  EXPECT_THROW(paired_ratio_interval(two, one), Error);
  EXPECT_THROW(paired_ratio_interval(zero, two), Error);
  EXPECT_THROW(paired_ratio_interval({}, {}), Error);
}

// How often the interval holds the truth, over many simulated samples.
double coverage(int size, double truth, const std::function<double(RandomStream&)>& draw,
                const std::function<Interval(const std::vector<double>&)>& interval) {
  constexpr int kRepeats = 4000;
  RandomStream random(17, RandomUse::Test, static_cast<std::uint64_t>(size));
  int held = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::vector<double> sample;
    for (int i = 0; i < size; ++i) sample.push_back(draw(random));
    const Interval found = interval(sample);
    held += found.low <= truth && truth <= found.high;
  }
  return held / static_cast<double>(kRepeats);
}

// 4000 repeats at 95 % have a standard error of 0.34 points: 0.938 is 3.5 of them below.
constexpr double kLeastCoverage = 0.938;

TEST(Coverage, IntervalsHoldTheTruthAsOftenAsTheyPromise) {
  const auto log_normal = [](RandomStream& random) { return std::exp(0.1 * random.normal()); };
  const auto median_of = [](const std::vector<double>& sample) { return median_interval(sample); };
  for (const int size : {2, 3, 5, 6, 11, 30}) {
    EXPECT_GE(coverage(size, 1.0, log_normal, median_of), kLeastCoverage) << "median of " << size;
  }
  // A symmetric log ratio with heavy tails: one in ten pairs has ten times the noise.
  const auto heavy = [](RandomStream& random) {
    const double scale = random.uniform() < 0.1 ? 0.2 : 0.02;
    return 1.05 * std::exp(scale * random.normal());
  };
  const auto ratio_of = [](const std::vector<double>& sample) {
    return paired_ratio_interval(sample, std::vector<double>(sample.size(), 1.0));
  };
  for (const int size : {2, 3, 5, 6, 8, 20}) {
    EXPECT_GE(coverage(size, 1.05, heavy, ratio_of), kLeastCoverage) << "ratio of " << size;
  }
}

TEST(Coverage, RanksAreTighterThanTheMeanWhenSomePairsAreDisturbed) {
  RandomStream random(3, RandomUse::Test);
  double ranks = 0, means = 0;
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<double> logs, values;
    for (int i = 0; i < 12; ++i) {
      logs.push_back((random.uniform() < 0.1 ? 0.3 : 0.01) * random.normal());
      values.push_back(std::exp(logs.back()));
    }
    const Interval by_rank = paired_ratio_interval(values, std::vector<double>(12, 1.0));
    const Interval by_mean = mean_interval(logs);
    ranks += std::log(by_rank.high / by_rank.low);
    means += by_mean.high - by_mean.low;
  }
  EXPECT_LT(ranks, 0.6 * means);
}

}  // namespace
}  // namespace batchwright
