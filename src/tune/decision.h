#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/statistics.h"
#include "tune/explain.h"
#include "tune/search.h"

namespace batchwright::tune {

// What became of one split.
struct SplitResult {
  run::Split split;
  std::string layout, checkpointing;
  run::Outcome outcome = run::Outcome::NotTried;
  std::optional<Interval> step_seconds;  // on a typical window of the recommended split
  std::optional<Interval> relative;      // step time relative to the recommended split's, on common windows
  std::int64_t rounds = 0;
  std::optional<std::int64_t> peak_bytes;  // the largest seen, on the longest examples where they were run
  std::map<std::string, double> phases;    // mean seconds a step
  std::optional<std::int64_t> observed_micro_batch, observed_accumulation_steps;
  std::string why_dropped;  // empty for the recommended split and its ties
};

// What more devices gain: the fastest split on each number of devices that was tried.
struct DeviceScaling {
  std::int64_t devices = 1;
  std::size_t split = 0;                   // into Decision::trials
  std::optional<double> speedup;           // over the fewest devices tried, at the same effective batch
  std::optional<double> efficiency;        // speedup / (devices / fewest devices)
  std::optional<double> collective_share;  // of its step: sums over the devices, waiting for them included
};

struct Decision {
  std::int64_t requested_effective_batch = 0;
  std::vector<SplitResult> trials;      // largest micro-batch first
  std::vector<SplitResult> token_cuts;  // timed beside them, never recommended; largest budget first
  std::optional<std::size_t> recommended;
  std::vector<std::size_t> tied_with;
  bool settled = false, confirmed_on_worst_batch = false;
  std::optional<std::size_t> largest_that_fits;       // the common advice
  std::optional<std::size_t> largest_and_neighbours;  // the best of it and the next two smaller ones
  double tuning_seconds = 0;
  std::optional<Interval> saving;  // 1 - recommended / slowest
  std::optional<std::size_t> slowest;
  std::optional<double> break_even_steps;  // after which the tuning has paid for itself, against the slowest
  std::vector<DeviceScaling> scaling;      // empty when one number of devices was tried
  std::string reason;                      // one sentence
  Explanation explanation;
};

// `stopped_because`: why the search ended before it was settled ("the budget of 60 s ran out"); empty
// otherwise. `calibration`: of the machine that ran the trials, for the explanation; null: none.
Decision decide(const SearchOptions& options, std::span<const run::Split> splits,
                std::span<const run::Trial> trials, double tuning_seconds,
                const std::string& stopped_because = "", const hardware::Calibration* calibration = nullptr);

// result.json.
Json to_json(const Decision& decision);

}  // namespace batchwright::tune
