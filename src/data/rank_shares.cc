#include "data/rank_shares.h"

#include <algorithm>
#include <numeric>

namespace batchwright::data {

std::vector<std::vector<std::uint32_t>> rank_shares(std::span<const std::int32_t> lengths, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  const std::size_t room = (lengths.size() + count - 1) / count;
  std::vector<std::uint32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<std::uint32_t>> shares(count);
  std::vector<std::int64_t> tokens(count, 0);
  for (const std::uint32_t example : order) {
    std::size_t lightest = count;
    for (std::size_t rank = 0; rank < count; ++rank) {
      if (shares[rank].size() == room) continue;
      if (lightest == count || tokens[rank] < tokens[lightest]) lightest = rank;
    }
    shares[lightest].push_back(example);
    tokens[lightest] += std::max(lengths[example], 1);
  }
  for (auto& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

}  // namespace batchwright::data
