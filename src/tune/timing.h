#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/statistics.h"
#include "run/trial.h"

namespace batchwright::tune {

// The timed steps of all trials, by split and window. Two splits are compared on the windows that both ran:
// the same examples, so that what a window costs cancels. Splits are numbered as in the list given.
//
// A split that was rounded up trains on more examples a step than was asked for; its seconds count per
// requested effective batch (seconds * requested / real).
class TimingTable {
 public:
  // Trials on the longest batch and failed ones are left out, and so are windows from `end_window` on.
  TimingTable(std::span<const run::Split> splits, std::span<const run::Trial> trials,
              std::int64_t requested_effective_batch, std::int64_t end_window = INT64_MAX);

  bool measured(std::size_t split) const { return !seconds_[split].empty(); }
  // By what factor split a is slower than b; nullopt without a common window.
  std::optional<Interval> ratio(std::size_t a, std::size_t b, double confidence) const;
  // The same from the windows [begin, end) alone: the median of the ratios.
  std::optional<double> ratio_within(std::size_t a, std::size_t b, std::int64_t begin,
                                     std::int64_t end) const;
  // The fastest of the candidates (all measured): least median of log seconds after each window's own cost is
  // taken off (the mean over the candidates that ran it). nullopt when none is measured.
  std::optional<std::size_t> fastest(std::span<const std::size_t> candidates) const;
  // Step time of a split on the reference's typical window: the reference's median times ratio(split,
  // reference), so that times and ratios stand in the same order. Makes a split that was dropped early
  // comparable.
  std::optional<Interval> step_seconds(std::size_t split, std::size_t reference, double confidence) const;
  double median_seconds(std::size_t split) const;  // unscaled; the split must be measured

 private:
  std::vector<std::map<std::int64_t, double>> seconds_;  // by split: window -> seconds
};

}  // namespace batchwright::tune
