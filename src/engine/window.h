#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/layout.h"
#include "data/token_file.h"
#include "engine/linear.h"
#include "engine/token_batch.h"

namespace batchwright::engine {

// How an effective batch is cut. micro_tokens > 0 makes a token cut; otherwise micro_batch examples a
// micro-batch.
struct Cut {
  std::int64_t micro_batch = 1;
  std::int64_t micro_tokens = 0;
  data::Layout layout = data::Layout::Packed;
  Checkpointing checkpointing = Checkpointing::None;
};

// The work of one optimizer step: for every thread the shards it runs, in order.
struct WindowPlan {
  std::vector<std::vector<Shard>> shards;  // [thread][...]
  std::int64_t micro_steps = 0, examples = 0, real_tokens = 0, padded_tokens = 0;
  std::int64_t targets = 0;  // that have a loss, in the whole window: what the sum of losses is divided by
};

// Cuts the window into micro-batches and gives them to threads. A micro-batch with at least one example a
// thread is sharded over all threads; smaller ones run side by side, one a thread. Depends on its arguments
// only, so a run can be repeated bit for bit. `wants` is the head's. `padding_id` (-1: none) is no last
// token: like Transformers' decoders, a classifier reads the last one that is another.
WindowPlan plan_window(const data::TokenFile& tokens, std::span<const std::uint32_t> rows, const Cut& cut,
                       int threads, WantedRows wants, std::int64_t padding_id);

// Batches whose heaviest shards need as much memory as any that a training on `rows` meets, whose windows
// have one of these numbers of rows: of the longest examples, of those with most targets, and, where a window
// does not divide, of what is left over, which may be too few examples to share out and then is one thread's.
std::vector<std::vector<std::uint32_t>> heaviest_rows(const data::TokenFile& tokens,
                                                      std::span<const std::uint32_t> rows, const Cut& cut,
                                                      std::span<const std::int64_t> windows, int threads);

}  // namespace batchwright::engine
