#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/token_file.h"

namespace batchwright::data {

struct HoldOut {
  std::vector<std::uint32_t> train;  // row numbers of the token file
  std::vector<std::uint32_t> held_out;
};

// Shuffles all rows with `seed` (a data file is often sorted by label), then keeps round(rows * fraction) for
// evaluation. The result depends on (rows, fraction, seed) only. Throws Usage when a side that must not be
// empty is.
HoldOut split_rows(std::uint32_t rows, double held_out_fraction, std::uint64_t seed);

// The same for a token file: a question's windows stay together, so that none of them is trained on while
// another is evaluated; the share is then of the questions.
HoldOut split_rows(const TokenFile& tokens, double held_out_fraction, std::uint64_t seed);

// Which examples make up effective batch number `step` (0-based, counted in optimizer steps over all epochs):
// a function of (seed, epoch, step) alone, never of how the batch is cut. Every epoch is a fresh permutation;
// the last window of an epoch may hold fewer than effective_batch rows and never reaches into the next epoch.
class Sampler {
 public:
  Sampler(std::vector<std::uint32_t> rows, std::int64_t effective_batch, std::uint64_t seed);

  std::int64_t steps_per_epoch() const;  // ceil(rows / effective_batch)
  std::int64_t epoch_of(std::int64_t step) const { return step / steps_per_epoch(); }
  std::vector<std::uint32_t> window(std::int64_t step);

 private:
  std::vector<std::uint32_t> rows_, order_;
  std::int64_t effective_batch_;
  std::uint64_t seed_;
  std::int64_t order_epoch_ = -1;  // the epoch that order_ holds
};

// The rows with the most tokens, longest first, ties by the number of targets and then by row number: the
// worst batch the data can produce.
std::vector<std::uint32_t> longest_rows(const TokenFile& tokens, std::span<const std::uint32_t> rows,
                                        std::int64_t count);

// The rows with the most targets, ties by tokens and then by row number: where a language model needs most
// logits.
std::vector<std::uint32_t> most_labelled_rows(const TokenFile& tokens, std::span<const std::uint32_t> rows,
                                              std::int64_t count);

// The micro-batches of a token cut that may need most memory: each takes a row and then, of the rows that are
// no longer, always the longest that the budget still holds, at most most_rows together. The first begins
// with the longest row of all, every further one with a shorter row and holds more tokens, or more rows, than
// those before it: of two equally full ones, that of more rows may be shared out less evenly.
std::vector<std::vector<std::uint32_t>> fullest_micro_batches(const TokenFile& tokens,
                                                              std::span<const std::uint32_t> rows,
                                                              std::int64_t micro_tokens,
                                                              std::int64_t most_rows);

}  // namespace batchwright::data
