#include "data/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::data {
namespace {

struct LayoutName {
  std::string_view name;
  Layout layout;
};
constexpr std::array kLayouts = {LayoutName{"arrival", Layout::Arrival}, LayoutName{"sorted", Layout::Sorted},
                                 LayoutName{"packed", Layout::Packed}};

std::vector<std::uint32_t> arrival_order(std::size_t examples) {
  std::vector<std::uint32_t> order(examples);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

// Longest first: the micro-batch with the peak comes first, so that one that cannot fit fails at once.
std::vector<std::uint32_t> length_order(std::span<const std::int32_t> lengths) {
  std::vector<std::uint32_t> order = arrival_order(lengths.size());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return lengths[a] > lengths[b]; });
  return order;
}

MicroBatch make_micro_batch(std::span<const std::uint32_t> members, std::span<const std::int32_t> lengths,
                            bool padded) {
  MicroBatch batch{.members = {members.begin(), members.end()}};
  std::int64_t longest = 0;
  for (const std::uint32_t member : members) {
    batch.real_tokens += lengths[member];
    longest = std::max<std::int64_t>(longest, lengths[member]);
  }
  batch.padded_tokens = padded ? longest * static_cast<std::int64_t>(members.size()) : batch.real_tokens;
  return batch;
}

// Without padding nothing is gained by like lengths in one micro-batch, and much by even ones: the longest
// micro-batch sets the peak. Longest first, each example goes to the lightest micro-batch that has room.
std::vector<std::vector<std::uint32_t>> deal_evenly(std::span<const std::int32_t> lengths,
                                                    std::int64_t micro_batch) {
  const auto room = static_cast<std::size_t>(std::min<std::int64_t>(
      micro_batch, std::max<std::int64_t>(1, static_cast<std::int64_t>(lengths.size()))));
  std::vector<std::vector<std::uint32_t>> dealt((lengths.size() + room - 1) / room);
  std::vector<std::int64_t> tokens(dealt.size(), 0);
  for (const std::uint32_t example : length_order(lengths)) {
    std::size_t lightest = dealt.size();
    for (std::size_t i = 0; i < dealt.size(); ++i) {
      if (dealt[i].size() < room && (lightest == dealt.size() || tokens[i] < tokens[lightest])) lightest = i;
    }
    dealt[lightest].push_back(example);
    tokens[lightest] += lengths[example];
  }
  return dealt;
}

void require_positive(std::int64_t value, const char* option) {
  if (value < 1) throw Error(ErrorKind::Usage, option, fmt::format("is {}; it must be at least 1", value));
}

}  // namespace

Layout parse_layout(std::string_view text) {
  std::vector<std::string_view> names;
  for (const LayoutName& entry : kLayouts) {
    if (entry.name == text) return entry.layout;
    names.push_back(entry.name);
  }
  const std::string near = nearest_choice(text, names);
  throw Error(ErrorKind::Usage, "layout", fmt::format("'{}' is none of {}", text, fmt::join(names, ", ")),
              near.empty() ? "" : fmt::format("Did you mean '{}'?", near));
}

std::string_view layout_name(Layout layout) {
  for (const LayoutName& entry : kLayouts) {
    if (entry.layout == layout) return entry.name;
  }
  throw Error(ErrorKind::Internal, "layout", fmt::format("{} is not a layout", static_cast<int>(layout)));
}

std::vector<MicroBatch> cut_window(std::span<const std::int32_t> lengths, std::int64_t micro_batch,
                                   Layout layout) {
  require_positive(micro_batch, "micro-batch");
  std::vector<MicroBatch> batches;
  if (layout == Layout::Packed) {
    for (const auto& members : deal_evenly(lengths, micro_batch)) {
      batches.push_back(make_micro_batch(members, lengths, false));
    }
    return batches;
  }
  const std::vector<std::uint32_t> order =
      layout == Layout::Arrival ? arrival_order(lengths.size()) : length_order(lengths);
  std::span<const std::uint32_t> rest(order);
  while (!rest.empty()) {
    const auto count =
        static_cast<std::size_t>(std::min<std::int64_t>(micro_batch, static_cast<std::int64_t>(rest.size())));
    batches.push_back(make_micro_batch(rest.first(count), lengths, true));
    rest = rest.subspan(count);
  }
  return batches;
}

std::vector<MicroBatch> cut_window_by_tokens(std::span<const std::int32_t> lengths,
                                             std::int64_t micro_tokens) {
  require_positive(micro_tokens, "micro-tokens");
  const std::vector<std::uint32_t> order = length_order(lengths);
  std::vector<MicroBatch> batches;
  std::span<const std::uint32_t> rest(order);
  while (!rest.empty()) {
    std::size_t count = 1;
    std::int64_t tokens = lengths[rest[0]];
    while (count < rest.size() && tokens + lengths[rest[count]] <= micro_tokens) {
      tokens += lengths[rest[count++]];
    }
    batches.push_back(make_micro_batch(rest.first(count), lengths, false));
    rest = rest.subspan(count);
  }
  return batches;
}

}  // namespace batchwright::data
