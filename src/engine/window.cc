#include "engine/window.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "data/sampler.h"

namespace batchwright::engine {
namespace {

// The place of one wanted row, and what the head shall say there.
void append_place(const Sequence& sequence, std::int64_t position, std::int32_t target, Shard& shard) {
  const std::int64_t row = sequence.first_row + position;
  TokenBatch& wanted = shard.wanted;
  wanted.ids.push_back(shard.tokens.ids[static_cast<std::size_t>(row)]);
  wanted.type_ids.push_back(shard.tokens.type_ids[static_cast<std::size_t>(row)]);
  wanted.positions.push_back(static_cast<std::uint32_t>(position));
  wanted.examples.push_back(sequence.example);
  ++wanted.sequences.back().rows;
  ++wanted.sequences.back().valid;
  shard.places.push_back(static_cast<std::int32_t>(row));
  shard.targets.push_back(target);
}

// The rows that have a label; a causal language model predicts a token from the row before it.
void append_labelled(const data::TokenFile& tokens, const Sequence& sequence, Shard& shard) {
  const auto labels = tokens.token_labels(sequence.example);
  const std::int64_t shift = tokens.task() == data::Task::CausalLm ? 1 : 0;
  for (std::int64_t i = shift; i < sequence.valid; ++i) {
    const std::int32_t label = labels[static_cast<std::size_t>(i)];
    if (label != data::TokenFile::kNoLabel) append_place(sequence, i - shift, label, shard);
  }
}

std::int64_t last_text_token(const TokenBatch& batch, const Sequence& sequence, std::int64_t padding_id) {
  std::int64_t position = sequence.valid - 1;
  while (position > 0 && batch.ids[static_cast<std::size_t>(sequence.first_row + position)] == padding_id) {
    --position;
  }
  return position;
}

void append_wanted(const data::TokenFile& tokens, const Sequence& sequence, std::int64_t padding_id,
                   Shard& shard) {
  if (shard.wants == WantedRows::All) {
    const data::TokenFile::Span answer = tokens.span(sequence.example);
    shard.targets.insert(shard.targets.end(), {answer.first, answer.last});
    return;
  }
  shard.wanted.sequences.push_back(
      {.first_row = shard.wanted.rows(), .rows = 0, .valid = 0, .example = sequence.example});
  if (shard.wants == WantedRows::Labelled) {
    append_labelled(tokens, sequence, shard);
  } else {
    const std::int64_t position =
        shard.wants == WantedRows::Last ? last_text_token(shard.tokens, sequence, padding_id) : 0;
    append_place(sequence, position, tokens.label(sequence.example), shard);
  }
}

void append_row(const data::TokenFile& tokens, std::uint32_t row, std::int64_t padded_length,
                std::int64_t padding_id, Shard& shard) {
  TokenBatch& batch = shard.tokens;
  const auto ids = tokens.ids(row);
  const auto types = tokens.type_ids(row);
  const auto valid = static_cast<std::int64_t>(ids.size());
  const Sequence sequence{.first_row = batch.rows(), .rows = padded_length, .valid = valid, .example = row};
  batch.sequences.push_back(sequence);
  batch.real_tokens += valid;
  for (std::int64_t i = 0; i < padded_length; ++i) {
    const auto at = static_cast<std::size_t>(i);
    batch.ids.push_back(i < valid ? ids[at] : 0);
    batch.type_ids.push_back(i < valid ? types[at] : 0);
    batch.positions.push_back(static_cast<std::uint32_t>(i));
    batch.examples.push_back(row);
  }
  append_wanted(tokens, sequence, padding_id, shard);
}

// Deals items to `bins` so that the loads are even: longest first to the lightest bin; ties to the lower
// number.
std::vector<std::vector<std::uint32_t>> deal(std::span<const std::int64_t> loads, std::size_t bins) {
  std::vector<std::uint32_t> order(loads.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return loads[a] > loads[b]; });
  std::vector<std::vector<std::uint32_t>> dealt(bins);
  std::vector<std::int64_t> totals(bins, 0);
  for (const std::uint32_t item : order) {
    const auto lightest =
        static_cast<std::size_t>(std::min_element(totals.begin(), totals.end()) - totals.begin());
    dealt[lightest].push_back(item);
    totals[lightest] += loads[item];
  }
  for (auto& bin : dealt) std::sort(bin.begin(), bin.end());
  return dealt;
}

// Which thread runs which part of a micro-batch, so that all threads end together: the heaviest part goes to
// the thread that has least to do so far. `busy` are the threads' loads before, and then after.
std::vector<std::size_t> threads_for(const std::vector<std::int64_t>& part_loads,
                                     std::vector<std::int64_t>& busy) {
  std::vector<std::size_t> parts(part_loads.size()), threads(part_loads.size());
  std::iota(parts.begin(), parts.end(), std::size_t{0});
  std::iota(threads.begin(), threads.end(), std::size_t{0});
  std::stable_sort(parts.begin(), parts.end(), [&](auto a, auto b) { return part_loads[a] > part_loads[b]; });
  std::stable_sort(threads.begin(), threads.end(), [&](auto a, auto b) { return busy[a] < busy[b]; });
  std::vector<std::size_t> thread_of(part_loads.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    thread_of[parts[i]] = threads[i];
    busy[threads[i]] += part_loads[parts[i]];
  }
  return thread_of;
}

}  // namespace

WindowPlan plan_window(const data::TokenFile& tokens, std::span<const std::uint32_t> rows, const Cut& cut,
                       int threads, WantedRows wants, std::int64_t padding_id) {
  std::vector<std::int32_t> lengths;
  for (const std::uint32_t row : rows) lengths.push_back(tokens.length(row));
  const auto micro_batches = cut.micro_tokens > 0 ? data::cut_window_by_tokens(lengths, cut.micro_tokens)
                                                  : data::cut_window(lengths, cut.micro_batch, cut.layout);
  const bool packed = cut.micro_tokens > 0 || cut.layout == data::Layout::Packed;
  const auto team = static_cast<std::size_t>(threads);
  WindowPlan plan;
  plan.shards.resize(team);
  plan.micro_steps = static_cast<std::int64_t>(micro_batches.size());
  std::vector<std::int64_t> busy(team, 0);
  std::vector<Shard> whole;
  std::vector<std::int64_t> whole_loads;
  for (const data::MicroBatch& micro : micro_batches) {
    std::int64_t longest = 1;
    std::vector<std::int64_t> loads;
    for (const std::uint32_t member : micro.members)
      longest = std::max<std::int64_t>(longest, lengths[member]);
    for (const std::uint32_t member : micro.members) {
      // A row of an empty text still has its special tokens; one row is the least that a model can see.
      loads.push_back(packed ? std::max<std::int64_t>(lengths[member], 1) : longest);
    }
    plan.examples += static_cast<std::int64_t>(micro.members.size());
    plan.real_tokens += micro.real_tokens;
    plan.padded_tokens += std::accumulate(loads.begin(), loads.end(), std::int64_t{0});
    const bool shared = micro.members.size() >= team;
    std::vector<Shard> shards;
    std::vector<std::int64_t> shard_loads;
    for (const auto& part : deal(loads, shared ? team : 1)) {
      Shard& shard = shards.emplace_back();
      shard.wants = wants;
      for (const std::uint32_t i : part)
        append_row(tokens, rows[micro.members[i]], loads[i], padding_id, shard);
      plan.targets += static_cast<std::int64_t>(shard.targets.size());
      shard_loads.push_back(shard.tokens.rows());
    }
    if (!shared) {
      whole_loads.push_back(shard_loads.front());
      whole.push_back(std::move(shards.front()));
      continue;
    }
    const std::vector<std::size_t> thread_of = threads_for(shard_loads, busy);
    for (std::size_t part = 0; part < shards.size(); ++part) {
      plan.shards[thread_of[part]].push_back(std::move(shards[part]));
    }
  }
  const auto dealt = deal(whole_loads, team);
  for (std::size_t thread = 0; thread < team; ++thread) {
    for (const std::uint32_t i : dealt[thread]) plan.shards[thread].push_back(std::move(whole[i]));
  }
  return plan;
}

std::vector<std::vector<std::uint32_t>> heaviest_rows(const data::TokenFile& tokens,
                                                      std::span<const std::uint32_t> rows, const Cut& cut,
                                                      std::span<const std::int64_t> windows, int threads) {
  const bool targets_differ = tokens.task() == data::Task::CausalLm;
  std::vector<std::vector<std::uint32_t>> heaviest;
  if (cut.micro_tokens > 0) {
    const std::int64_t most = *std::max_element(windows.begin(), windows.end());
    heaviest = data::fullest_micro_batches(tokens, rows, cut.micro_tokens, most);
    if (!targets_differ) return heaviest;
    std::vector<std::uint32_t> labelled = data::most_labelled_rows(tokens, rows, most);
    std::size_t count = 0;
    std::int64_t held = 0;
    while (count < labelled.size() && held + tokens.length(labelled[count]) <= cut.micro_tokens)
      held += tokens.length(labelled[count++]);
    labelled.resize(count);
    heaviest.push_back(std::move(labelled));
    return heaviest;
  }
  std::set<std::int64_t> counts(windows.begin(), windows.end());
  for (const std::int64_t window : windows) {
    const std::int64_t rest = window % cut.micro_batch;
    if (rest == 0) continue;
    // The packed layout deals by tokens: how many examples a micro-batch then lacks depends on their lengths.
    const std::int64_t unshared = std::min<std::int64_t>(cut.micro_batch, threads - 1);
    counts.insert(cut.layout == data::Layout::Packed ? std::max(rest, std::min(window, unshared)) : rest);
  }
  for (const std::int64_t count : counts) {
    if (count == 0) continue;
    heaviest.push_back(data::longest_rows(tokens, rows, count));
    if (targets_differ) heaviest.push_back(data::most_labelled_rows(tokens, rows, count));
  }
  return heaviest;
}

}  // namespace batchwright::engine
