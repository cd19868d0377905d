#include "tune/search.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "tune/fit.h"
#include "tune/timing.h"
#include "tune/token_cuts.h"

namespace batchwright::tune {
namespace {

using run::Outcome;
using run::Trial;
using run::TrialRequest;

// After one round all of a split's steps lie close together, so a disturbance of the machine can hit them
// all; only a clear difference counts then.
constexpr double kFirstRoundMargin = 0.15;

class Search {
 public:
  Search(const SearchOptions& options, std::span<const run::Split> splits, std::span<const Trial> trials)
      : options_(options), splits_(splits), trials_(trials) {
    state_.splits = split_states(splits, trials);
    state_.why_dropped.resize(splits.size());
  }

  SearchState run() {
    if (options_.starts_are_dear && !options_.exhaustive && every_start_crashes()) return std::move(state_);
    const FitBoundary boundary = find_boundary();
    state_.largest_that_fits = boundary.largest_fit;
    for (std::size_t i = 0; i < splits_.size(); ++i) {
      if (!state_.splits[i].out && is_candidate(boundary, i)) state_.racing.push_back(i);
    }
    explain_untried(boundary);
    if (!options_.exhaustive && boundary.probe) {
      state_.next = options_.probe_longest ? probe(*boundary.probe)
                                           : round_request(*boundary.probe, round_at(options_, 0));
    } else {
      state_.next = next_of_rounds();
    }
    choose_winner();
    if (!state_.next && state_.winner && options_.probe_longest && !state_.splits[*state_.winner].confirmed) {
      state_.next = confirmation(*state_.winner);
    }
    if (options_.exhaustive) note_largest_measured();
    return std::move(state_);
  }

 private:
  // A start is dear, and the rest would tell nothing new.
  bool every_start_crashes() {
    const std::string alike = crashed_alike(splits_, state_.splits);
    for (std::size_t i = 0; !alike.empty() && i < splits_.size(); ++i) {
      if (!state_.splits[i].out) state_.why_dropped[i] = "not started: " + alike;
    }
    return !alike.empty();
  }

  FitBoundary find_boundary() const { return fit_boundary(options_, splits_, state_.splits); }

  bool is_candidate(const FitBoundary& boundary, std::size_t i) const {
    if (options_.exhaustive) return true;
    return boundary.largest_fit && i >= *boundary.largest_fit;
  }

  void explain_untried(const FitBoundary& boundary) {
    if (boundary.predicted_bytes) {
      const std::string why =
          fmt::format("not started: {} is predicted to need {} of the {} allowed",
                      run::to_string(splits_[*boundary.largest_fit - 1]),
                      format_bytes(*boundary.predicted_bytes), format_bytes(options_.memory_limit_bytes));
      for (std::size_t i = 0; i < *boundary.largest_fit; ++i) {
        if (!state_.splits[i].out) state_.why_dropped[i] = why;
      }
    }
    if (!boundary.smallest_fail) return;
    for (std::size_t i = 0; i < *boundary.smallest_fail; ++i) {
      if (state_.splits[i].out || options_.exhaustive) continue;
      state_.why_dropped[i] = fmt::format("larger than {}, which ran out of memory",
                                          run::to_string(splits_[*boundary.smallest_fail]));
    }
  }

  TrialRequest request(std::size_t split) const {
    TrialRequest result;
    result.split = splits_[split];
    result.layout = options_.layout;
    result.checkpointing = options_.checkpointing;
    return result;
  }

  // Two micro-batches at most: the second one meets the gradients of the first, and the later ones are like
  // it.
  TrialRequest probe(std::size_t split) const {
    TrialRequest result = request(split);
    const std::int64_t enough = std::max<std::int64_t>(2, options_.parallel_micro_batches);
    result.split.accumulation_steps = std::min(result.split.accumulation_steps, enough);
    result.batch = "longest";
    return result;
  }

  TrialRequest confirmation(std::size_t split) const {
    TrialRequest result = request(split);
    result.batch = "longest";
    return result;
  }

  TrialRequest round_request(std::size_t split, const Round& round) const {
    TrialRequest result = request(split);
    result.warmup_steps = options_.warmup_steps;
    result.steps = round.steps;
    result.first_step = round.first_window;
    return result;
  }

  bool has_round(std::size_t split, const Round& round) const {
    const auto& rounds = state_.splits[split].rounds;
    return std::find(rounds.begin(), rounds.end(), round.first_window) != rounds.end();
  }

  // Runs the race as far as the trials go; the request that is missing, or nullopt when it is over.
  std::optional<TrialRequest> next_of_rounds() {
    const std::int64_t most = options_.exhaustive ? SearchOptions::kExhaustiveRounds : options_.most_rounds;
    for (std::int64_t number = 0; number < most; ++number) {
      const Round round = round_at(options_, number);
      std::vector<std::size_t> order = state_.racing;
      if (number % 2 == 1) std::reverse(order.begin(), order.end());
      for (const std::size_t split : order) {
        if (has_round(split, round)) continue;
        if (number == 0 && rises_towards(split)) {
          std::erase(state_.racing, split);
          continue;
        }
        return round_request(split, round);
      }
      if (options_.exhaustive) continue;
      const TimingTable table(splits_, trials_, options_.effective_batch, round.end_window(options_));
      const auto best = table.fastest(state_.racing);
      if (!best) return std::nullopt;
      drop_slower(table, *best, number);
      if (number > 0 || state_.racing.size() == 1) state_.settled = rest_ties(table, *best);
      if (state_.settled || !affordable(table, number + 1)) return std::nullopt;
    }
    if (options_.exhaustive) state_.settled = true;
    return std::nullopt;
  }

  // Smaller micro-batches pay the fixed cost more often, so once times rise they go on rising.
  bool rises_towards(std::size_t split) {
    if (!options_.starts_are_dear || options_.exhaustive) return false;
    const TimingTable table(splits_, trials_, options_.effective_batch,
                            round_at(options_, 0).end_window(options_));
    std::vector<std::size_t> larger;  // measured, nearest first
    for (std::size_t i = split; i-- > 0;) {
      if (table.measured(i) && !state_.splits[i].out) larger.push_back(i);
    }
    if (larger.size() < 2) return false;
    const auto rise = table.ratio(larger[0], larger[1], options_.confidence);
    if (!rise || rise->low <= 1 || rise->mid <= 1 + 2 * options_.tolerance) return false;
    state_.why_dropped[split] = fmt::format("not started: times rise towards it ({} is {} slower than {})",
                                            run::to_string(splits_[larger[0]]), format_percent(rise->mid - 1),
                                            run::to_string(splits_[larger[1]]));
    return true;
  }

  void drop_slower(const TimingTable& table, std::size_t best, std::int64_t number) {
    std::erase_if(state_.racing, [&](std::size_t split) {
      if (split == best) return false;
      const auto ratio = table.ratio(split, best, options_.confidence);
      if (!ratio || ratio->low <= 1) return false;
      if (number == 0 ? ratio->low <= 1 + kFirstRoundMargin
                      : !slower_in_each_round(table, split, best, number)) {
        return false;
      }
      state_.why_dropped[split] =
          fmt::format("{} slower than {} [{}, {}] after {} round{}", format_percent(ratio->mid - 1),
                      run::to_string(splits_[best]), format_percent(ratio->low - 1),
                      format_percent(ratio->high - 1), number + 1, number == 0 ? "" : "s");
      return true;
    });
  }

  bool slower_in_each_round(const TimingTable& table, std::size_t split, std::size_t best,
                            std::int64_t last) const {
    for (std::int64_t number = 0; number <= last; ++number) {
      const Round round = round_at(options_, number);
      const auto ratio = table.ratio_within(split, best, round.first_window, round.end_window(options_));
      if (ratio && *ratio <= 1) return false;
    }
    return true;
  }

  bool rest_ties(const TimingTable& table, std::size_t best) const {
    return std::all_of(state_.racing.begin(), state_.racing.end(),
                       [&](std::size_t split) { return split == best || proved_tie(table, split, best); });
  }

  bool proved_tie(const TimingTable& table, std::size_t split, std::size_t best) const {
    const auto ratio = table.ratio(split, best, options_.confidence);
    return ratio && ratio->high <= 1 + options_.tolerance;
  }

  // Whether one more round, the confirmation and the token cuts' rounds keep the search below its share of
  // the exhaustive sweep.
  bool affordable(const TimingTable& table, std::int64_t next_number) const {
    double sweep = 0, next = 0;
    const double spent = seconds_before(round_at(options_, next_number));
    constexpr double kSweepSteps = SearchOptions::kExhaustiveRounds * SearchOptions::kExhaustiveSteps;
    for (std::size_t split = 0; split < splits_.size(); ++split) {
      if (table.measured(split)) sweep += kSweepSteps * table.median_seconds(split);
    }
    const double steps = static_cast<double>(options_.warmup_steps + round_at(options_, next_number).steps);
    double slowest = 0, fastest = std::numeric_limits<double>::infinity();
    for (const std::size_t split : state_.racing) {
      next += steps * table.median_seconds(split);
      slowest = std::max(slowest, table.median_seconds(split));
      fastest = std::min(fastest, table.median_seconds(split));
    }
    next += static_cast<double>(token_cut_steps(options_)) * fastest;
    // The longest examples may be four times as long as the typical ones.
    const double confirmation = options_.probe_longest ? 4 * slowest : 0;
    return spent + next + confirmation <= options_.most_cost_share * sweep;
  }

  // What the search had cost when this round was decided on; later trials must not change a decision of the
  // past.
  double seconds_before(const Round& round) const {
    double sum = 0;
    for (const Trial& trial : trials_) {
      if (trial.request.batch == "sampled" && trial.request.first_step >= round.first_window) break;
      sum += trial.wall_seconds - trial.startup_seconds;
    }
    return sum;
  }

  void choose_winner() {
    const TimingTable table(splits_, trials_, options_.effective_batch);
    std::vector<std::size_t> candidates = state_.racing;
    std::erase_if(candidates, [&](std::size_t split) { return !table.measured(split); });
    if (candidates.empty()) {
      // Every split in the race failed its confirmation: the best of those dropped before.
      for (std::size_t split = 0; split < splits_.size(); ++split) {
        if (table.measured(split) && !state_.splits[split].out) candidates.push_back(split);
      }
    }
    const auto best = table.fastest(candidates);
    if (!best) return;
    std::vector<std::size_t> ties = {*best};
    for (const std::size_t split : candidates) {
      if (split != *best && proved_tie(table, split, *best)) ties.push_back(split);
    }
    state_.winner = *std::min_element(ties.begin(), ties.end(), [&](std::size_t a, std::size_t b) {
      return peak_or_micro_batch(a) < peak_or_micro_batch(b);
    });
    for (const std::size_t split : ties) {
      if (split != *state_.winner) state_.tied_with.push_back(split);
    }
  }

  // What ranks ties by memory: measured peaks, or the micro-batch where a peak is not known.
  std::pair<std::int64_t, std::int64_t> peak_or_micro_batch(std::size_t split) const {
    const SplitState& state = state_.splits[split];
    return {state.sampled_peak_bytes.value_or(0), splits_[split].micro_batch};
  }

  void note_largest_measured() {
    for (std::size_t split = splits_.size(); split-- > 0;) {
      if (state_.splits[split].measured() && !state_.splits[split].out) state_.largest_that_fits = split;
    }
  }

  const SearchOptions& options_;
  std::span<const run::Split> splits_;
  std::span<const Trial> trials_;
  SearchState state_;
};

}  // namespace

Round round_at(const SearchOptions& options, std::int64_t number) {
  if (options.exhaustive) {
    const std::int64_t windows = options.warmup_steps + SearchOptions::kExhaustiveSteps;
    return {number, number * windows, SearchOptions::kExhaustiveSteps};
  }
  const std::int64_t first = options.warmup_steps + options.first_round_steps;
  if (number == 0) return {0, 0, options.first_round_steps};
  return {number, first + (number - 1) * (options.warmup_steps + options.round_steps), options.round_steps};
}

SearchState search_state(const SearchOptions& options, std::span<const run::Split> splits,
                         std::span<const Trial> trials) {
  return Search(options, splits, trials).run();
}

}  // namespace batchwright::tune
