#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/memory.h"
#include "engine/ops.h"
#include "engine/parameters.h"
#include "engine/process_group.h"

namespace batchwright::engine {

// Sums the gradients of a window over the threads of this process and over all ranks, in place in the first
// thread's block, while backward goes on: the parts of the model (Parameters) are collected into buckets from
// the last part to the first, and a bucket is summed over the ranks as soon as every thread has left its
// parts for the last time. All ranks have the same buckets, so they sum them in the same order.
//
// A token embedding's gradient has one row a token of the vocabulary, and only the window's tokens have a
// gradient: since every rank knows the window, these rows alone are exchanged, at the end (in BERT-like
// models the table is a third to a half of all weights). The sum is exact all the same.
class GradientSum {
 public:
  GradientSum(const Parameters& parameters, Ops& ops, ProcessGroup& group);

  // Before the backward of a window: every thread's gradient block.
  void start(std::vector<float*> blocks);
  // A thread's gradients of this part are final. Each thread says it once a part, from the last to part 0.
  void finished(std::int64_t part);
  void finished_all();  // by a thread that has no work in this window
  // Waits for all sums. token_ids: of the whole window, in any order, repeated or not.
  void finish(std::span<const std::int32_t> token_ids);

 private:
  struct Range {
    std::int64_t begin = 0, end = 0;
  };
  struct Bucket {
    std::int64_t last_part = 0;  // the part that backward leaves last
    std::vector<Range> ranges;
    std::atomic<std::size_t> threads{0};  // that have left it
  };
  struct Table {  // a gradient that is zero outside the rows of the window's tokens
    std::int64_t begin = 0, width = 0;
  };

  void begin(const Bucket& bucket);
  void sum_tables(std::span<const std::int32_t> token_ids);

  const Parameters& parameters_;
  Ops& ops_;
  ProcessGroup& group_;
  std::deque<Bucket> buckets_;  // in the order in which backward fills them
  std::vector<Table> tables_;
  std::vector<float*> blocks_;
  Buffer rows_;  // of the tables, side by side, while they are summed
};

}  // namespace batchwright::engine
