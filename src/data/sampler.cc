#include "data/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace batchwright::data {

HoldOut split_rows(std::uint32_t rows, double held_out_fraction, std::uint64_t seed) {
  if (!(held_out_fraction >= 0 && held_out_fraction < 1)) {
    throw Error(ErrorKind::Usage, "eval-fraction",
                fmt::format("is {}; it must be at least 0 and below 1", held_out_fraction));
  }
  const auto held_out = static_cast<std::uint32_t>(std::llround(rows * held_out_fraction));
  if (held_out == rows || (held_out == 0 && held_out_fraction > 0)) {
    throw Error(ErrorKind::Usage, "eval-fraction",
                fmt::format("{} of {} rows leaves {} to train on and {} to evaluate on", held_out_fraction,
                            rows, rows - held_out, held_out),
                "Give more rows, or --eval-fraction 0 to train without evaluation");
  }
  const std::vector<std::uint32_t> order = shuffled_indices(rows, seed, RandomUse::HoldOut);
  return {.train = {order.begin() + held_out, order.end()},
          .held_out = {order.begin(), order.begin() + held_out}};
}

HoldOut split_rows(const TokenFile& tokens, double held_out_fraction, std::uint64_t seed) {
  if (tokens.task() != Task::QuestionAnswering) return split_rows(tokens.rows(), held_out_fraction, seed);
  std::vector<std::uint32_t> first_row(tokens.questions() + 1, 0);  // a question's rows lie together
  for (std::uint32_t row = 0; row < tokens.rows(); ++row) ++first_row[tokens.question(row) + 1];
  std::partial_sum(first_row.begin(), first_row.end(), first_row.begin());
  const auto rows_of = [&](const std::vector<std::uint32_t>& questions) {
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t question : questions) {
      for (std::uint32_t row = first_row[question]; row < first_row[question + 1]; ++row) rows.push_back(row);
    }
    return rows;
  };
  const HoldOut questions = split_rows(tokens.questions(), held_out_fraction, seed);
  return {.train = rows_of(questions.train), .held_out = rows_of(questions.held_out)};
}

Sampler::Sampler(std::vector<std::uint32_t> rows, std::int64_t effective_batch, std::uint64_t seed)
    : rows_(std::move(rows)), effective_batch_(effective_batch), seed_(seed) {
  if (effective_batch_ < 1) {
    throw Error(ErrorKind::Usage, "effective-batch",
                fmt::format("is {}; it must be at least 1", effective_batch_));
  }
  if (rows_.empty()) throw Error(ErrorKind::Usage, "data", "has no rows to train on");
}

std::int64_t Sampler::steps_per_epoch() const {
  const auto rows = static_cast<std::int64_t>(rows_.size());
  return rows / effective_batch_ + (rows % effective_batch_ != 0);
}

std::vector<std::uint32_t> Sampler::window(std::int64_t step) {
  if (step < 0) throw Error(ErrorKind::Internal, "sampler", fmt::format("was asked for step {}", step));
  const std::int64_t epoch = epoch_of(step);
  if (epoch != order_epoch_) {
    order_ = shuffled_indices(static_cast<std::uint32_t>(rows_.size()), seed_, RandomUse::EpochOrder,
                              static_cast<std::uint64_t>(epoch));
    for (std::uint32_t& index : order_) index = rows_[index];
    order_epoch_ = epoch;
  }
  const std::int64_t first = (step - epoch * steps_per_epoch()) * effective_batch_;
  const std::int64_t count = std::min(effective_batch_, static_cast<std::int64_t>(order_.size()) - first);
  return {order_.begin() + first, order_.begin() + first + count};
}

namespace {

// The rows of the greatest weight(length, targets), ties by row number.
template <class Weight>
std::vector<std::uint32_t> first_by(const TokenFile& tokens, std::span<const std::uint32_t> rows,
                                    std::int64_t count, Weight weight) {
  std::vector<std::uint32_t> first(rows.begin(), rows.end());
  const auto kept = std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(first.size()));
  std::vector<std::pair<std::int64_t, std::int64_t>> weights(tokens.rows());
  for (const std::uint32_t row : first) weights[row] = weight(tokens.length(row), tokens.targets(row));
  std::partial_sort(first.begin(), first.begin() + kept, first.end(), [&](std::uint32_t a, std::uint32_t b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  });
  first.resize(static_cast<std::size_t>(kept));
  return first;
}

}  // namespace

std::vector<std::uint32_t> longest_rows(const TokenFile& tokens, std::span<const std::uint32_t> rows,
                                        std::int64_t count) {
  return first_by(tokens, rows, count,
                  [](std::int64_t length, std::int64_t targets) { return std::pair(length, targets); });
}

std::vector<std::uint32_t> most_labelled_rows(const TokenFile& tokens, std::span<const std::uint32_t> rows,
                                              std::int64_t count) {
  return first_by(tokens, rows, count,
                  [](std::int64_t length, std::int64_t targets) { return std::pair(targets, length); });
}

std::vector<std::vector<std::uint32_t>> fullest_micro_batches(const TokenFile& tokens,
                                                              std::span<const std::uint32_t> rows,
                                                              std::int64_t micro_tokens,
                                                              std::int64_t most_rows) {
  const auto order = longest_rows(tokens, rows, static_cast<std::int64_t>(rows.size()));
  const auto no_longer_than = [&](auto from, std::int64_t length) {
    return std::partition_point(from, order.end(), [&](auto row) { return tokens.length(row) > length; });
  };
  std::vector<std::vector<std::uint32_t>> fullest;
  std::int64_t most_tokens = -1;
  std::size_t most_members = 0;
  for (auto first = order.begin(); first != order.end();
       first = no_longer_than(first, tokens.length(*first) - 1)) {
    std::vector<std::uint32_t> members = {*first};  // one row may exceed the budget alone
    std::int64_t held = tokens.length(*first);
    for (auto next = first + 1; static_cast<std::int64_t>(members.size()) < most_rows; ++next) {
      next = no_longer_than(next, micro_tokens - held);
      if (next == order.end()) break;
      members.push_back(*next);
      held += tokens.length(*next);
    }
    if (held <= most_tokens && members.size() <= most_members) continue;
    most_tokens = std::max(most_tokens, held);
    most_members = std::max(most_members, members.size());
    fullest.push_back(std::move(members));
  }
  return fullest;
}

}  // namespace batchwright::data
