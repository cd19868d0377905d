#include "tune/timing.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace batchwright::tune {
namespace {

struct Pairs {
  std::vector<double> a, b;
};

Pairs common_windows(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b,
                     std::int64_t begin, std::int64_t end) {
  Pairs pairs;
  for (auto at = a.lower_bound(begin); at != a.end() && at->first < end; ++at) {
    const auto other = b.find(at->first);
    if (other == b.end()) continue;
    pairs.a.push_back(at->second);
    pairs.b.push_back(other->second);
  }
  return pairs;
}

std::vector<double> values_of(const std::map<std::int64_t, double>& by_window) {
  std::vector<double> values;
  for (const auto& [window, seconds] : by_window) values.push_back(seconds);
  return values;
}

}  // namespace

TimingTable::TimingTable(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                         std::int64_t requested_effective_batch, std::int64_t end_window)
    : seconds_(splits.size()) {
  for (const run::Trial& trial : trials) {
    if (trial.outcome != run::Outcome::Measured || trial.request.batch != "sampled") continue;
    const auto found = std::find(splits.begin(), splits.end(), trial.request.split);
    if (found == splits.end()) continue;
    const double scale = found->is_token_cut() ? 1
                                               : static_cast<double>(requested_effective_batch) /
                                                     static_cast<double>(found->effective_batch());
    for (const run::TimedStep& step : trial.steps) {
      // A clock that stood still says nothing, and has no logarithm.
      if (step.window >= end_window || !(step.seconds > 0)) continue;
      seconds_[static_cast<std::size_t>(found - splits.begin())][step.window] = step.seconds * scale;
    }
  }
}

std::optional<Interval> TimingTable::ratio(std::size_t a, std::size_t b, double confidence) const {
  const Pairs pairs = common_windows(seconds_[a], seconds_[b], 0, INT64_MAX);
  if (pairs.a.empty()) return std::nullopt;
  return paired_ratio_interval(pairs.a, pairs.b, confidence);
}

std::optional<double> TimingTable::ratio_within(std::size_t a, std::size_t b, std::int64_t begin,
                                                std::int64_t end) const {
  Pairs pairs = common_windows(seconds_[a], seconds_[b], begin, end);
  if (pairs.a.empty()) return std::nullopt;
  for (std::size_t i = 0; i < pairs.a.size(); ++i) pairs.a[i] /= pairs.b[i];
  return median(pairs.a);
}

std::optional<std::size_t> TimingTable::fastest(std::span<const std::size_t> candidates) const {
  std::map<std::int64_t, std::pair<double, int>> window_logs;  // sum over the candidates, count
  for (const std::size_t split : candidates) {
    for (const auto& [window, seconds] : seconds_[split]) {
      window_logs[window].first += std::log(seconds);
      ++window_logs[window].second;
    }
  }
  std::optional<std::size_t> best;
  double least = 0;
  for (const std::size_t split : candidates) {
    std::vector<double> effects;
    for (const auto& [window, seconds] : seconds_[split]) {
      const auto& [sum, count] = window_logs[window];
      if (count == static_cast<int>(candidates.size())) effects.push_back(std::log(seconds) - sum / count);
    }
    // No window that all ran: compare plain medians, which is the best there is.
    if (effects.empty()) {
      for (const auto& [window, seconds] : seconds_[split]) effects.push_back(std::log(seconds));
    }
    if (effects.empty()) continue;
    if (const double effect = median(effects); !best || effect < least) {
      best = split;
      least = effect;
    }
  }
  return best;
}

std::optional<Interval> TimingTable::step_seconds(std::size_t split, std::size_t reference,
                                                  double confidence) const {
  if (!measured(split)) return std::nullopt;
  if (split == reference || !measured(reference))
    return median_interval(values_of(seconds_[split]), confidence);
  const Pairs pairs = common_windows(seconds_[split], seconds_[reference], 0, INT64_MAX);
  if (pairs.a.empty()) return median_interval(values_of(seconds_[split]), confidence);
  const double typical = median(values_of(seconds_[reference]));
  const Interval factor = paired_ratio_interval(pairs.a, pairs.b, confidence);
  return Interval{typical * factor.mid, typical * factor.low, typical * factor.high};
}

double TimingTable::median_seconds(std::size_t split) const { return median(values_of(seconds_[split])); }

}  // namespace batchwright::tune
