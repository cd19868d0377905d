#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "run/trial.h"

namespace batchwright::tune {

// What was measured of one split, a step.
struct Observation {
  run::Split split;
  double micro_steps = 0;
  Interval seconds;
  double tokens = 0, padded_tokens = 0;  // a step; 0: not reported
  std::map<std::string, double> phases;
  std::map<std::string, double> enqueue;    // the host's seconds to enqueue a phase; empty: not known
  std::optional<double> device_busy_share;  // of the step

  double phase(const char* name) const {
    const auto found = phases.find(name);
    return found == phases.end() ? 0 : found->second;
  }
  // What the line has to explain.
  double compute_seconds() const {
    return std::max(0.0, seconds.mid - phase("optimizer") - phase("input") - phase("collective"));
  }
  // Time in which the device had nothing to do.
  std::optional<double> idle_seconds() const {
    if (!device_busy_share) return std::nullopt;
    return seconds.mid * (1 - *device_busy_share);
  }
};

// The measured splits, largest micro-batch first. Splits ran on different windows when some were dropped
// early: times are scaled to the recommended split's typical window.
std::vector<Observation> observe(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                                 std::optional<run::Split> recommended);

}  // namespace batchwright::tune
