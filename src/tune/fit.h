#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "tune/search.h"

namespace batchwright::tune {

// What is known of the boundary between splits that fit and splits that do not. More examples in a
// micro-batch never need less memory, so one success speaks for all smaller micro-batches and one failure for
// all larger. Indices into the splits, largest micro-batch first.
struct FitBoundary {
  std::optional<std::size_t> largest_fit;    // the largest micro-batch known to fit
  std::optional<std::size_t> smallest_fail;  // the smallest known to run out of memory
  std::optional<std::size_t> probe;          // the split to try next; nullopt: the boundary is known
  // Of the split above largest_fit, when it is so far above the limit that it is not tried.
  std::optional<std::int64_t> predicted_bytes;
};

// Peak memory is near-linear in the tokens of a micro-batch, so two measured peaks predict
// where the limit is reached and a third trial verifies it, one more shows that the next larger split fails.
// Where starts are dear the way goes up one by one, and not to a split that is predicted to be far above the
// limit. Without a limit
// the largest split is tried first; after a wrong prediction the rest is bisected.
FitBoundary fit_boundary(const SearchOptions& options, std::span<const run::Split> splits,
                         std::span<const SplitState> states);

}  // namespace batchwright::tune
