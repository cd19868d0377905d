#pragma once

#include <cstdint>
#include <vector>

namespace batchwright::engine {

// One example's place in a TokenBatch.
struct Sequence {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;      // rows it occupies: its tokens, plus padding in the padded layouts
  std::int64_t valid = 0;     // its tokens
  std::uint32_t example = 0;  // row of the data set: keys dropout
  std::int32_t label = 0;
};

// What one forward and backward sees: examples stacked along rows, one token a row.
struct TokenBatch {
  std::vector<Sequence> sequences;
  std::vector<std::int32_t> ids, type_ids;         // [rows]
  std::vector<std::uint32_t> positions, examples;  // [rows]; position inside the sequence, and its example
  std::int64_t real_tokens = 0;

  std::int64_t rows() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t size() const { return static_cast<std::int64_t>(sequences.size()); }
};

// A piece of one micro-batch: the whole of it, or the share of one thread.
struct Shard {
  TokenBatch tokens;
  TokenBatch
      firsts;  // the first token of every sequence: all that a classifier needs of its last layer's output
};

}  // namespace batchwright::engine
