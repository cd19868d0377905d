#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/memory.h"
#include "engine/ops.h"
#include "engine/parameters.h"
#include "engine/process_group.h"
#include "engine/workers.h"

namespace batchwright::engine {

// Sums the gradients of a window over the threads of this process and over all ranks, in place in the first
// thread's block. A token embedding's gradient has one row a token of the vocabulary, and only the window's
// tokens have a gradient: since every rank knows the window, these rows alone are exchanged (in BERT-like
// models the table is a third to a half of all weights). The sum is exact all the same.
class GradientSum {
 public:
  GradientSum(const Parameters& parameters, Ops& ops, ProcessGroup& group);

  // token_ids: of the whole window, in any order, repeated or not.
  void run(Workers& workers, const std::vector<float*>& blocks, std::span<const std::int32_t> token_ids);

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  struct Table {  // a gradient that is zero outside the rows of the window's tokens
    std::int64_t begin = 0, width = 0;
  };

  const Parameters& parameters_;
  Ops& ops_;
  ProcessGroup& group_;
  std::vector<Range> dense_;
  std::vector<Table> tables_;
  Buffer rows_;  // of the tables, side by side, while they are summed
};

}  // namespace batchwright::engine
