#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/json.h"
#include "data/token_file.h"

namespace batchwright::data {

// How long the examples are, in tokens with special tokens: what padding, memory and time follow from.
struct LengthStatistics {
  // Rows whose length is in [low, high].
  struct Bin {
    std::int32_t low = 0, high = 0;
    std::int64_t rows = 0;
  };
  std::int64_t rows = 0, tokens = 0;
  double mean = 0;
  std::int32_t shortest = 0, median = 0, p90 = 0, p95 = 0, p99 = 0, longest = 0;
  std::vector<Bin> histogram;  // bins of equal width from 1 on, at most 32, the last not empty
};

// Quantiles are lengths that occur: the smallest length that at least a share q of the rows do not exceed.
// No rows: all zero. Lengths must be at least 1.
LengthStatistics length_statistics(std::span<const std::int32_t> lengths);

std::vector<std::int32_t> row_lengths(const TokenFile& tokens);

Json to_json(const LengthStatistics& statistics);

}  // namespace batchwright::data
