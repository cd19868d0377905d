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

// The rows of the last layer's output that a head reads: nothing after the last attention needs to run on
// others.
enum class WantedRows {
  First,     // each sequence's first token: a classifier on an encoder
  Last,      // each sequence's last token, padding apart: a classifier on a decoder
  Labelled,  // the rows that have a target: token classification and language models
  All,       // every row, padding included: extractive question answering
};

// A piece of one micro-batch: the whole of it, or the share of one thread.
struct Shard {
  TokenBatch tokens;
  WantedRows wants = WantedRows::First;
  // The wanted rows alone, stacked: every sequence with as many rows as it has wanted ones (perhaps none).
  // Not filled for All, where they would be `tokens` again; wanted_rows() serves both.
  TokenBatch wanted;
  std::vector<std::int32_t> places;  // [wanted.rows()]; row of `tokens` that each was taken from
  // What the loss compares with: the class of every wanted row.
  std::vector<std::int32_t> targets;

  const TokenBatch& wanted_rows() const { return wants == WantedRows::All ? tokens : wanted; }
};

}  // namespace batchwright::engine
