#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/options.h"

namespace batchwright::tune {

// The splits to try, largest micro-batch first, on each of these numbers of devices: every exact one, and
// with allow_inexact also the powers of two that do not divide the effective batch, their accumulation steps
// rounded up. `warnings` says of each what it makes of the effective batch. Throws Usage when a number of
// devices has none.
struct Candidates {
  std::vector<run::Split> splits;
  std::vector<std::string> warnings;
};
Candidates candidate_splits(std::int64_t effective_batch, std::span<const std::int64_t> devices,
                            bool allow_inexact);

// The splits that verify runs beside the reference: the one that was chosen, or those with about 4 and 16
// times its accumulation steps and two examples or more in a micro-batch (one example alone upsets batch
// statistics).
std::vector<run::Split> splits_to_compare(const std::vector<run::Split>& candidates,
                                          const run::Split& reference,
                                          const std::optional<run::Split>& chosen);

}  // namespace batchwright::tune
