#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/trial.h"
#include "tune/split_state.h"

namespace batchwright::tune {

struct SearchOptions {
  std::int64_t effective_batch = 0;     // requested
  std::int64_t memory_limit_bytes = 0;  // 0: not known
  bool probe_longest =
      true;  // the workload can run its longest examples, and fewer micro-batches than a step
  // Micro-batches smaller than this many examples run side by side, so many at a time (the engine's threads).
  std::int64_t parallel_micro_batches = 1;
  bool exhaustive = false;  // every split, 10 rounds of 5 steps: the yardstick for the search
  // Every trial is a start: a split is not tried when the two next larger ones were measured and times rise
  // towards it.
  bool starts_are_dear = false;
  std::string layout = "auto", checkpointing = "none";
  std::vector<run::Split> token_cuts;  // timed beside the exact splits once these are settled

  double tolerance = 0.02;   // splits within it tie
  double confidence = 0.95;  // of every interval
  std::int64_t warmup_steps = 1;
  std::int64_t first_round_steps = 3, round_steps = 4;
  std::int64_t most_rounds = 8;
  // The search stops with what it knows before its time exceeds this share of the exhaustive sweep's.
  double most_cost_share = 0.25;

  static constexpr std::int64_t kExhaustiveRounds = 10, kExhaustiveSteps = 5;
};

// A round: every split still in the race runs the same windows, in an order that turns round each time.
struct Round {
  std::int64_t number = 0, first_window = 0, steps = 0;
  std::int64_t end_window(const SearchOptions& options) const {
    return first_window + options.warmup_steps + steps;
  }
};
Round round_at(const SearchOptions& options, std::int64_t number);

// Where the search stands: a function of the trials so far and nothing else, so that a killed run continues
// by reading its trials back.
struct SearchState {
  std::optional<run::TrialRequest> next;  // nullopt: decided, or nothing can be tried
  std::vector<SplitState> splits;
  std::vector<std::size_t> racing;       // splits not dropped
  std::vector<std::string> why_dropped;  // one a split; empty while it races
  std::optional<std::size_t> winner;     // the best so far
  std::vector<std::size_t> tied_with;    // proved within the tolerance of the winner
  bool settled = false;  // the best is separated or the rest tie; false: stopped by cost or rounds
  std::optional<std::size_t> largest_that_fits;
};

// splits: largest micro-batch first.
SearchState search_state(const SearchOptions& options, std::span<const run::Split> splits,
                         std::span<const run::Trial> trials);

}  // namespace batchwright::tune
