#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tune/search.h"

namespace batchwright::tune {

// Token budgets worth timing beside the exact splits, largest first: a half, a quarter and an eighth of the
// real tokens that an effective batch has on average, in multiples of 64, and none that the longest example
// alone fills (it would be one example a micro-batch). Empty when there is none.
std::vector<run::Split> token_cuts(double mean_tokens_of_example, std::int64_t longest_example,
                                   std::int64_t effective_batch);

// Token cuts are timed after the exact splits are settled, in rounds of their own that the chosen exact split
// runs too: the same windows, interleaved, so that they compare. The cuts are options.token_cuts. Under a
// memory limit each cut first runs on the longest examples.
// nullopt: nothing more to try.
std::optional<run::TrialRequest> next_token_cut_trial(const SearchOptions& options, const run::Split& chosen,
                                                      std::span<const run::Trial> trials);

// The optimizer steps that these rounds take, the chosen split's own included.
std::int64_t token_cut_steps(const SearchOptions& options);

}  // namespace batchwright::tune
