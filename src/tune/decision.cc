#include "tune/decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/units.h"
#include "tune/timing.h"

namespace batchwright::tune {
namespace {

using run::Outcome;

void fill_from_trials(SplitResult& result, std::span<const run::Trial> trials) {
  double steps = 0;
  for (const run::Trial& trial : trials) {
    if (!(trial.request.split == result.split)) continue;
    if (trial.observed_micro_batch) result.observed_micro_batch = trial.observed_micro_batch;
    if (trial.observed_accumulation_steps)
      result.observed_accumulation_steps = trial.observed_accumulation_steps;
    if (trial.outcome != Outcome::Measured || trial.request.batch != "sampled") continue;
    ++result.rounds;
    const double count = static_cast<double>(trial.steps.size());
    steps += count;
    for (const auto& [name, mean] : trial.phases) result.phases[name] += mean * count;
  }
  for (auto& [name, sum] : result.phases) sum /= steps;
}

SplitResult result_of(const SearchOptions& options, const run::Split& split, const SplitState& split_state,
                      const std::string& why_dropped, std::span<const run::Trial> trials) {
  SplitResult result;
  result.split = split;
  result.layout = split.is_token_cut() ? "packed" : options.layout;
  result.checkpointing = options.checkpointing;
  result.outcome = split_state.outcome;
  fill_from_trials(result, trials);
  if (split_state.longest_peak_bytes || split_state.sampled_peak_bytes) {
    result.peak_bytes =
        std::max(split_state.longest_peak_bytes.value_or(0), split_state.sampled_peak_bytes.value_or(0));
  }
  result.why_dropped = split_state.out ? split_state.reason : why_dropped;
  if (result.outcome == Outcome::NotTried && result.why_dropped.empty()) {
    result.why_dropped = "the search ended before its turn";
  }
  return result;
}

void add_times(Decision& decision, const TimingTable& table, double confidence) {
  const std::size_t reference = *decision.recommended;
  for (std::size_t i = 0; i < decision.trials.size(); ++i) {
    decision.trials[i].step_seconds = table.step_seconds(i, reference, confidence);
    decision.trials[i].relative = table.ratio(i, reference, confidence);
  }
  decision.trials[reference].relative = Interval{1, 1, 1};
}

void add_saving(Decision& decision) {
  for (std::size_t i = 0; i < decision.trials.size(); ++i) {
    const auto& relative = decision.trials[i].relative;
    // A tie may come out ahead of the recommended one, which then saves nothing.
    if (!relative || i == decision.recommended || relative->mid <= 1) continue;
    if (!decision.slowest || relative->mid > decision.trials[*decision.slowest].relative->mid)
      decision.slowest = i;
  }
  if (!decision.slowest) return;
  const Interval ratio = *decision.trials[*decision.slowest].relative;
  decision.saving = Interval{1 - 1 / ratio.mid, 1 - 1 / ratio.low, 1 - 1 / ratio.high};
  const double gained = (ratio.mid - 1) * decision.trials[*decision.recommended].step_seconds->mid;
  if (gained > 0) decision.break_even_steps = std::ceil(decision.tuning_seconds / gained);
}

void add_common_advice(Decision& decision, const TimingTable& table) {
  if (!decision.largest_that_fits) return;
  std::vector<std::size_t> tried;
  for (std::size_t i = *decision.largest_that_fits; i < decision.trials.size() && tried.size() < 3; ++i) {
    if (table.measured(i)) tried.push_back(i);
  }
  decision.largest_and_neighbours = table.fastest(tried);
}

void add_token_cuts(Decision& decision, const SearchOptions& options, std::span<const run::Split> splits,
                    std::span<const run::Trial> trials) {
  const std::vector<run::Split>& cuts = options.token_cuts;
  std::vector<run::Split> all(splits.begin(), splits.end());
  all.insert(all.end(), cuts.begin(), cuts.end());
  const TimingTable table(all, trials, options.effective_batch);
  const std::vector<SplitState> states = split_states(cuts, trials);
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    SplitResult result = result_of(options, cuts[i], states[i], "", trials);
    const std::size_t at = splits.size() + i;
    result.step_seconds = table.step_seconds(at, *decision.recommended, options.confidence);
    result.relative = table.ratio(at, *decision.recommended, options.confidence);
    decision.token_cuts.push_back(std::move(result));
  }
}

void add_scaling(Decision& decision, const TimingTable& table, double confidence) {
  std::map<std::int64_t, std::vector<std::size_t>> by_devices;
  for (std::size_t i = 0; i < decision.trials.size(); ++i) {
    auto& measured = by_devices[decision.trials[i].split.devices];
    if (table.measured(i) && decision.trials[i].outcome == Outcome::Measured) measured.push_back(i);
  }
  if (by_devices.size() < 2) return;
  std::optional<std::size_t> fewest;
  for (const auto& [devices, measured] : by_devices) {
    const auto best = table.fastest(measured);
    if (!best) continue;
    if (!fewest) fewest = best;
    DeviceScaling scaling;
    scaling.devices = devices;
    scaling.split = *best;
    const auto ratio = table.ratio(*fewest, *best, confidence);
    if (*best == *fewest) {
      scaling.speedup = 1;
    } else if (ratio) {
      scaling.speedup = ratio->mid;
    }
    const double more =
        static_cast<double>(devices) / static_cast<double>(decision.trials[*fewest].split.devices);
    if (scaling.speedup) scaling.efficiency = *scaling.speedup / more;
    double step = 0;
    const auto& phases = decision.trials[*best].phases;
    for (const auto& [name, seconds] : phases) step += seconds;
    if (const auto found = phases.find("collective"); found != phases.end() && step > 0) {
      scaling.collective_share = found->second / step;
    }
    decision.scaling.push_back(scaling);
  }
}

std::string against_largest(const Decision& decision) {
  const std::size_t largest = *decision.largest_that_fits;
  const auto& relative = decision.trials[largest].relative;
  if (largest == *decision.recommended || !relative) return "";
  return fmt::format("; the largest that fits, {}, takes {:.2f} times as long",
                     run::to_string(decision.trials[largest].split), relative->mid);
}

std::string tie_sentence(const Decision& decision) {
  if (decision.tied_with.empty()) return "";
  std::vector<std::string> names;
  for (const std::size_t i : decision.tied_with) names.push_back(run::to_string(decision.trials[i].split));
  return fmt::format(", tied with {} and needing less memory", fmt::join(names, ", "));
}

std::string reason_of(const Decision& decision, const SearchOptions& options,
                      const std::string& stopped_because) {
  if (!decision.recommended) {
    const bool out_of_memory =
        std::any_of(decision.trials.begin(), decision.trials.end(),
                    [](const SplitResult& result) { return result.outcome == Outcome::OutOfMemory; });
    if (!stopped_because.empty()) return fmt::format("nothing was measured: {}", stopped_because);
    return out_of_memory ? "nothing fits: even the smallest micro-batch ran out of memory"
                         : "no split could be measured; when the cause is mended, the same command with "
                           "--overwrite starts afresh";
  }
  const SplitResult& chosen = decision.trials[*decision.recommended];
  const auto count = [&](const auto& of) {
    return static_cast<std::size_t>(std::count_if(decision.trials.begin(), decision.trials.end(), of));
  };
  const bool all_exact = decision.trials.size() == count([&](const SplitResult& result) {
                           return result.split.effective_batch() == decision.requested_effective_batch;
                         });
  const bool alone = decision.trials.size() > 1 && count([](const SplitResult& result) {
                                                     return result.outcome == Outcome::Measured;
                                                   }) == 1;
  std::string reason =
      fmt::format("{} is the {} of {} {}splits of {}{}", run::to_string(chosen.split),
                  alone ? "only one" : "fastest", decision.trials.size(), all_exact && !alone ? "exact " : "",
                  decision.requested_effective_batch, alone ? " that was measured" : "");
  reason += tie_sentence(decision);
  if (decision.largest_that_fits) reason += against_largest(decision);
  if (!stopped_because.empty()) {
    reason += fmt::format("; not settled, because {}", stopped_because);
  } else if (!decision.settled) {
    reason += fmt::format("; it is not proved to be more than {} ahead of the next",
                          format_percent(options.tolerance, 0));
  }
  return reason;
}

Json maybe_interval(const std::optional<Interval>& interval, const char* middle, double scale = 1) {
  if (!interval) return nullptr;
  const auto finite = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  return {{middle, interval->mid * scale},
          {"low", finite(interval->low * scale)},
          {"high", finite(interval->high * scale)}};
}

Json to_json(const SplitResult& result, std::int64_t effective_batch) {
  Json phases = Json::object();
  for (const auto& [name, seconds] : result.phases) phases[name] = seconds;
  const bool tokens = result.split.is_token_cut();
  return {{"micro_batch", tokens ? Json() : Json(result.split.micro_batch)},
          {"accumulation_steps", tokens ? Json() : Json(result.split.accumulation_steps)},
          {"devices", result.split.devices},
          {"effective_batch", tokens ? effective_batch : result.split.effective_batch()},
          {"layout", result.layout},
          {"micro_tokens", tokens ? Json(result.split.micro_tokens) : Json()},
          {"checkpointing", result.checkpointing},
          {"outcome", run::outcome_name(result.outcome)},
          {"observed_micro_batch", or_null(result.observed_micro_batch)},
          {"observed_accumulation_steps", or_null(result.observed_accumulation_steps)},
          {"step_seconds", maybe_interval(result.step_seconds, "median")},
          {"relative", maybe_interval(result.relative, "mid")},
          {"rounds", result.rounds},
          {"peak_bytes", or_null(result.peak_bytes)},
          {"phases", std::move(phases)},
          {"why_dropped", result.why_dropped.empty() ? Json() : Json(result.why_dropped)}};
}

Json scaling_json(const Decision& decision) {
  Json rows = Json::array();
  for (const DeviceScaling& scaling : decision.scaling) {
    rows.push_back({{"devices", scaling.devices},
                    {"split", run::to_string(decision.trials[scaling.split].split)},
                    {"speedup", or_null(scaling.speedup)},
                    {"efficiency", or_null(scaling.efficiency)},
                    {"collective_share", or_null(scaling.collective_share)}});
  }
  return rows;
}

}  // namespace

Decision decide(const SearchOptions& options, std::span<const run::Split> splits,
                std::span<const run::Trial> trials, double tuning_seconds, const std::string& stopped_because,
                const hardware::Calibration* calibration) {
  const SearchState state = search_state(options, splits, trials);
  const TimingTable table(splits, trials, options.effective_batch);
  Decision decision;
  decision.requested_effective_batch = options.effective_batch;
  decision.tuning_seconds = tuning_seconds;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    decision.trials.push_back(result_of(options, splits[i], state.splits[i], state.why_dropped[i], trials));
  }
  decision.recommended = state.winner;
  decision.tied_with = state.tied_with;
  decision.settled = state.settled && !state.next;
  decision.largest_that_fits = state.largest_that_fits;
  if (decision.recommended) {
    decision.confirmed_on_worst_batch = state.splits[*decision.recommended].confirmed;
    add_times(decision, table, options.confidence);
    add_saving(decision);
    add_common_advice(decision, table);
    add_token_cuts(decision, options, splits, trials);
    add_scaling(decision, table, options.confidence);
    decision.explanation =
        explain(splits, trials, splits[*decision.recommended], {calibration, options.starts_are_dear});
  }
  decision.reason = reason_of(decision, options, stopped_because);
  return decision;
}

Json to_json(const Decision& decision) {
  Json trials = Json::array();
  for (const auto* results : {&decision.trials, &decision.token_cuts}) {
    for (const SplitResult& result : *results) {
      trials.push_back(to_json(result, decision.requested_effective_batch));
    }
  }
  const auto saving_against = [&](const std::optional<std::size_t>& index) -> Json {
    if (!index || !decision.recommended) return nullptr;
    const auto& relative = decision.trials[*index].relative;
    if (!relative) return nullptr;
    return maybe_interval(Interval{1 - 1 / relative->mid, 1 - 1 / relative->low, 1 - 1 / relative->high},
                          "mid", 100);
  };
  return {{"version", 1},
          {"requested_effective_batch", decision.requested_effective_batch},
          {"trials", std::move(trials)},
          {"recommended", or_null(decision.recommended)},
          {"tied_with", decision.tied_with},
          {"settled", decision.settled},
          {"confirmed_on_worst_batch", decision.confirmed_on_worst_batch},
          {"largest_that_fits", or_null(decision.largest_that_fits)},
          {"largest_and_neighbours", or_null(decision.largest_and_neighbours)},
          {"slowest", or_null(decision.slowest)},
          {"tuning_seconds", decision.tuning_seconds},
          {"saving_percent", maybe_interval(decision.saving, "mid", 100)},
          {"saving_against_largest_percent", saving_against(decision.largest_that_fits)},
          {"break_even_steps", or_null(decision.break_even_steps)},
          {"scaling", scaling_json(decision)},
          {"reason", decision.reason},
          {"explanation", to_json(decision.explanation)}};
}

}  // namespace batchwright::tune
