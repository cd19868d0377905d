#include "base/statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"

namespace batchwright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> sorted(std::span<const double> sample) {
  if (sample.empty()) throw Error(ErrorKind::Internal, "statistics", "an empty sample has no quantiles");
  std::vector<double> values(sample.begin(), sample.end());
  std::sort(values.begin(), values.end());
  return values;
}

double quantile_of_sorted(const std::vector<double>& values, double probability) {
  const double at = std::clamp(probability, 0.0, 1.0) * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

// Abramowitz and Stegun 26.5.8; converges fast for x < (a + 1) / (a + b + 2).
double beta_continued_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kPrecision = 1e-15;
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double result = d;
  const auto advance = [&](double term) {
    d = 1 + term * d;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = 1 + term / c;
    if (std::abs(c) < kTiny) c = kTiny;
    result *= c * d;
    return std::abs(c * d - 1) < kPrecision;
  };
  for (int m = 1; m <= 500; ++m) {
    advance(m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)));
    if (advance(-(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)))) break;
  }
  return result;
}

double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  if (x < (a + 1) / (a + b + 2)) return front * beta_continued_fraction(a, b, x) / a;
  return 1 - front * beta_continued_fraction(b, a, 1 - x) / b;
}

std::vector<double> logarithms(std::span<const double> sample) {
  std::vector<double> result;
  for (const double value : sample) {
    if (!(value > 0) || !std::isfinite(value)) {
      throw Error(ErrorKind::Internal, "statistics", fmt::format("{} is not a positive value", value));
    }
    result.push_back(std::log(value));
  }
  return result;
}

Interval exponential(const Interval& logs) {
  return {std::exp(logs.mid), std::exp(logs.low), std::exp(logs.high)};
}

// How many of the smallest (and of the largest) order statistics can be cut while the rest still covers the
// centre with `confidence`: the largest k with 2 P(statistic < k) <= 1 - confidence, for a symmetric
// distribution of counts given by its probabilities.
std::size_t symmetric_cut(const std::vector<double>& probabilities, double confidence) {
  double tail = 0;
  for (std::size_t k = 0; k < probabilities.size(); ++k) {
    tail += probabilities[k];
    if (2 * tail > 1 - confidence) return k;
  }
  return 0;
}

std::vector<double> binomial_half(std::size_t n) {
  std::vector<double> result(n + 1);
  const double count = static_cast<double>(n);
  for (std::size_t k = 0; k <= n; ++k) {
    const double chosen = static_cast<double>(k);
    result[k] = std::exp(std::lgamma(count + 1) - std::lgamma(chosen + 1) - std::lgamma(count - chosen + 1) -
                         count * std::log(2.0));
  }
  return result;
}

// P(W = w) of Wilcoxon's signed-rank statistic for n pairs: subsets of ranks 1..n that sum to w, over 2^n.
std::vector<double> signed_rank(std::size_t n) {
  std::vector<double> result(n * (n + 1) / 2 + 1, 0.0);
  result[0] = 1;
  std::size_t reach = 0;
  for (std::size_t rank = 1; rank <= n; ++rank) {
    reach += rank;
    for (std::size_t w = reach + 1; w-- > 0;) {
      result[w] = 0.5 * (result[w] + (w >= rank ? result[w - rank] : 0.0));
    }
  }
  return result;
}

constexpr std::size_t kFewestForRanks = 6;   // the fewest with which ranks or order statistics reach 95 %
constexpr std::size_t kMostForRanks = 1000;  // Walsh averages grow with the square: 500,500 here

std::optional<Interval> hodges_lehmann(const std::vector<double>& differences, double confidence) {
  const std::size_t cut = symmetric_cut(signed_rank(differences.size()), confidence);
  if (cut == 0) return std::nullopt;  // so few pairs cannot reach this confidence
  std::vector<double> walsh;
  walsh.reserve(differences.size() * (differences.size() + 1) / 2);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    for (std::size_t j = i; j < differences.size(); ++j)
      walsh.push_back(0.5 * (differences[i] + differences[j]));
  }
  std::sort(walsh.begin(), walsh.end());
  return Interval{quantile_of_sorted(walsh, 0.5), walsh[cut - 1], walsh[walsh.size() - cut]};
}

}  // namespace

double median(std::span<const double> sample) { return quantile(sample, 0.5); }

double quantile(std::span<const double> sample, double probability) {
  return quantile_of_sorted(sorted(sample), probability);
}

double student_t_cdf(double t, double degrees_of_freedom) {
  const double tail =
      0.5 * incomplete_beta(degrees_of_freedom / 2, 0.5, degrees_of_freedom / (degrees_of_freedom + t * t));
  return t > 0 ? 1 - tail : tail;
}

double student_t_quantile(double probability, double degrees_of_freedom) {
  if (probability < 0.5) return -student_t_quantile(1 - probability, degrees_of_freedom);
  double low = 0, high = 1;
  while (student_t_cdf(high, degrees_of_freedom) < probability && high < 1e12) high *= 2;
  while (high - low > 1e-10 * (1 + high)) {
    const double middle = 0.5 * (low + high);
    (student_t_cdf(middle, degrees_of_freedom) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Interval mean_interval(std::span<const double> sample, double confidence) {
  if (sample.empty()) throw Error(ErrorKind::Internal, "statistics", "an empty sample has no mean");
  const double count = static_cast<double>(sample.size());
  double mean = 0, squares = 0;
  for (const double value : sample) mean += value / count;
  if (sample.size() == 1) return {mean, -kInfinity, kInfinity};
  for (const double value : sample) squares += (value - mean) * (value - mean);
  const double half_width =
      student_t_quantile(0.5 + confidence / 2, count - 1) * std::sqrt(squares / (count - 1) / count);
  return {mean, mean - half_width, mean + half_width};
}

Interval median_interval(std::span<const double> sample, double confidence) {
  const std::vector<double> values = sorted(sample);
  const double mid = quantile_of_sorted(values, 0.5);
  const std::size_t cut =
      values.size() < kFewestForRanks ? 0 : symmetric_cut(binomial_half(values.size()), confidence);
  if (cut > 0) return {mid, values[cut - 1], values[values.size() - cut]};
  const Interval logs = exponential(mean_interval(logarithms(sample), confidence));
  return {mid, std::min(mid, logs.low), std::max(mid, logs.high)};
}

Interval paired_ratio_interval(std::span<const double> numerator, std::span<const double> denominator,
                               double confidence) {
  if (numerator.size() != denominator.size()) {
    throw Error(ErrorKind::Internal, "statistics", "paired samples differ in size");
  }
  std::vector<double> differences = logarithms(numerator);
  const std::vector<double> subtracted = logarithms(denominator);
  for (std::size_t i = 0; i < differences.size(); ++i) differences[i] -= subtracted[i];
  if (differences.size() >= kFewestForRanks && differences.size() <= kMostForRanks) {
    if (const auto ranks = hodges_lehmann(differences, confidence)) return exponential(*ranks);
  }
  return exponential(mean_interval(differences, confidence));
}

}  // namespace batchwright
