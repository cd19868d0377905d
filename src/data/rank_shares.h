#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace batchwright::data {

// Which examples of a window each of `ranks` processes takes: positions into the window, rising. Examples are
// dealt longest first to the rank with the fewest tokens that still has room, so that no rank waits for
// another; room is ceil(examples / ranks), so a full window gives every rank the same number of examples.
// Depends on its arguments only: every rank computes all shares and takes its own.
std::vector<std::vector<std::uint32_t>> rank_shares(std::span<const std::int32_t> lengths, int ranks);

}  // namespace batchwright::data
