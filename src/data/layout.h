#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace batchwright::data {

// How the examples of one effective batch are arranged into micro-batches. None of them changes the gradient.
enum class Layout {
  Arrival,  // in the sampler's order, each micro-batch padded to its longest example: what other tools do
  Sorted,   // by length inside the effective batch, then cut and padded: little padding
  Packed,   // without padding, tokens dealt evenly: the linear layers see real tokens only
};

Layout parse_layout(std::string_view text);  // "arrival", "sorted", "packed"; throws Usage
std::string_view layout_name(Layout layout);

// One micro-batch: positions into the window, at most `micro_batch` of them.
struct MicroBatch {
  std::vector<std::uint32_t> members;
  std::int64_t real_tokens = 0;
  std::int64_t padded_tokens = 0;  // members * longest for the padded layouts, real_tokens for Packed
};

// Cuts a window of examples with these lengths (tokens each) into micro-batches of at most micro_batch
// examples: ceil(examples / micro_batch) of them, every example exactly once. Deterministic.
std::vector<MicroBatch> cut_window(std::span<const std::int32_t> lengths, std::int64_t micro_batch,
                                   Layout layout);

// The second kind of cut: micro-batches filled to at most micro_tokens real tokens each (one example may
// exceed it alone), by length. The number of micro-batches follows from the lengths.
std::vector<MicroBatch> cut_window_by_tokens(std::span<const std::int32_t> lengths,
                                             std::int64_t micro_tokens);

}  // namespace batchwright::data
