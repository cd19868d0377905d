#include "tune/observation.h"

#include <algorithm>
#include <utility>

#include "tune/timing.h"

namespace batchwright::tune {

std::vector<Observation> observe(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                                 std::optional<run::Split> recommended) {
  std::vector<Observation> result;
  const TimingTable table(splits, trials, splits.empty() ? 1 : splits.front().effective_batch());
  const std::size_t reference = static_cast<std::size_t>(
      recommended ? std::find(splits.begin(), splits.end(), *recommended) - splits.begin() : 0);
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const run::Split& split = splits[i];
    Observation seen;
    seen.split = split;
    seen.micro_steps = static_cast<double>(split.accumulation_steps);
    std::vector<double> seconds;
    double phase_steps = 0;
    for (const run::Trial& trial : trials) {
      if (!(trial.request.split == split) || trial.request.batch != "sampled") continue;
      if (trial.outcome != run::Outcome::Measured) continue;
      for (const run::TimedStep& step : trial.steps) {
        if (!(step.seconds > 0)) continue;
        seconds.push_back(step.seconds);
        seen.tokens += static_cast<double>(step.tokens);
        seen.padded_tokens += static_cast<double>(step.padded_tokens);
      }
      phase_steps += static_cast<double>(trial.steps.size());
      const auto count = static_cast<double>(trial.steps.size());
      for (const auto& [name, mean] : trial.phases) seen.phases[name] += mean * count;
      for (const auto& [name, mean] : trial.enqueue) seen.enqueue[name] += mean * count;
      if (trial.device_busy_share) seen.device_busy_share = trial.device_busy_share;
    }
    if (seconds.empty()) continue;
    seen.seconds = median_interval(seconds);
    seen.tokens /= static_cast<double>(seconds.size());
    seen.padded_tokens /= static_cast<double>(seconds.size());
    double scale = 1;  // to the reference's typical window
    if (reference < splits.size() && table.measured(reference)) {
      const Interval raw = seen.seconds;
      const double rounding = static_cast<double>(split.effective_batch()) /
                              static_cast<double>(splits.front().effective_batch());
      const Interval shared = *table.step_seconds(i, reference, 0.95);
      seen.seconds = {shared.mid * rounding, shared.low * rounding, shared.high * rounding};
      scale = seen.seconds.mid / raw.mid;
    }
    for (auto& [name, sum] : seen.phases) sum *= scale / phase_steps;
    for (auto& [name, sum] : seen.enqueue) sum *= scale / phase_steps;
    result.push_back(std::move(seen));
  }
  return result;
}

}  // namespace batchwright::tune
