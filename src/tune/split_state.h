#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/trial.h"

namespace batchwright::tune {

// What the trials so far say of one split.
struct SplitState {
  bool out = false;  // no more trials: it failed
  run::Outcome outcome = run::Outcome::NotTried;
  std::string reason;                              // why it is out
  std::optional<std::int64_t> longest_peak_bytes;  // measured on the longest examples
  std::optional<std::int64_t> sampled_peak_bytes;
  bool fits_longest = false;         // ran on the longest examples
  bool confirmed = false;            // ran a whole step on the longest examples
  std::vector<std::int64_t> rounds;  // first windows of its measured rounds
  int crashes = 0;

  bool measured() const { return !rounds.empty(); }
};

// "32x1 and 16x2 crashed alike" where two splits or more did, with the same words but for their numbers, and
// no other was tried: then the command is wrong, not the split. Else empty.
std::string crashed_alike(std::span<const run::Split> splits, std::span<const SplitState> states);

std::vector<SplitState> split_states(std::span<const run::Split> splits, std::span<const run::Trial> trials);

}  // namespace batchwright::tune
