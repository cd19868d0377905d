#include "tune/split_state.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright::tune {
namespace {

using run::Outcome;
using run::Trial;

constexpr int kMostCrashes = 2;  // one crash may be an accident of the machine, two are the split's

void note_failure(SplitState& state, const Trial& trial) {
  if (trial.outcome == Outcome::Crashed && ++state.crashes < kMostCrashes) return;
  state.out = true;
  state.outcome = trial.outcome;
  state.reason = trial.reason;
}

void note_measured(SplitState& state, const Trial& trial) {
  auto& peak = trial.request.batch == "longest" ? state.longest_peak_bytes : state.sampled_peak_bytes;
  if (trial.peak_bytes) peak = std::max(peak.value_or(0), *trial.peak_bytes);
  if (trial.request.batch == "sampled") {
    state.rounds.push_back(trial.request.first_step);
    state.outcome = Outcome::Measured;
  } else {
    state.fits_longest = true;
  }
}

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return c >= '0' && c <= '9'; });
  return text;
}

}  // namespace

std::string crashed_alike(std::span<const run::Split> splits, std::span<const SplitState> states) {
  std::vector<std::size_t> crashed;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].measured() || (states[i].out && states[i].outcome != Outcome::Crashed)) return "";
    if (states[i].out) crashed.push_back(i);
  }
  if (crashed.size() < 2) return "";
  const std::string words = without_numbers(states[crashed[0]].reason);
  for (const std::size_t i : crashed) {
    if (without_numbers(states[i].reason) != words) return "";
  }
  return fmt::format("{} and {} crashed alike", run::to_string(splits[crashed[0]]),
                     run::to_string(splits[crashed[1]]));
}

std::vector<SplitState> split_states(std::span<const run::Split> splits, std::span<const Trial> trials) {
  std::vector<SplitState> states(splits.size());
  for (const Trial& trial : trials) {
    for (std::size_t i = 0; i < splits.size(); ++i) {
      const bool same_micro_batch = splits[i].micro_batch == trial.request.split.micro_batch &&
                                    splits[i].micro_tokens == trial.request.split.micro_tokens &&
                                    splits[i].devices == trial.request.split.devices;
      const bool same_split = splits[i] == trial.request.split;
      // A probe runs fewer micro-batches than a step has.
      if (!same_split && !(same_micro_batch && trial.request.batch == "longest")) continue;
      if (trial.outcome == Outcome::Measured) {
        note_measured(states[i], trial);
        if (same_split && trial.request.batch == "longest") states[i].confirmed = true;
      } else if (trial.outcome != Outcome::NotTried) {
        note_failure(states[i], trial);
      }
    }
  }
  return states;
}

}  // namespace batchwright::tune
