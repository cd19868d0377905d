#include "tune/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/statistics.h"
#include "base/units.h"
#include "tune/timing.h"

namespace batchwright::tune {
namespace {

// What was measured of one split, a step.
struct Observation {
  run::Split split;
  double micro_steps = 0;
  Interval seconds;
  double tokens = 0, padded_tokens = 0;  // a step; 0: not reported
  std::map<std::string, double> phases;

  double phase(const char* name) const {
    const auto found = phases.find(name);
    return found == phases.end() ? 0 : found->second;
  }
  // What the line has to explain.
  double compute_seconds() const {
    return std::max(0.0, seconds.mid - phase("optimizer") - phase("input") - phase("collective"));
  }
};

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
      for (const auto& [name, mean] : trial.phases)
        seen.phases[name] += mean * static_cast<double>(trial.steps.size());
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
    result.push_back(std::move(seen));
  }
  return result;
}

struct Line {
  double fixed = 0, slope = 0;
};

// Least squares of compute = micro_steps * fixed + tokens * slope, each row divided by its compute. nullopt
// when the two columns are proportional: then no data of this kind can tell them apart.
std::optional<Line> fit_line(const std::vector<Observation>& observations) {
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  for (const Observation& seen : observations) {
    const double y = seen.compute_seconds();
    if (!(y > 0)) continue;
    const double a = seen.micro_steps / y, b = seen.padded_tokens / y;
    aa += a * a, ab += a * b, bb += b * b, ay += a, by += b;
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-6 * aa * bb)) return std::nullopt;
  Line line{(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant};
  if (line.fixed < 0) line = {0, by / bb};
  if (line.slope < 0) line = {ay / aa, 0};
  return line;
}

double predicted(const Observation& seen, const Line& line) {
  return seen.micro_steps * line.fixed + seen.padded_tokens * line.slope;
}

void add_shares(Explanation& explanation, const Observation& seen, const Line& line) {
  const double total = seen.seconds.mid;
  const double padding = std::max(0.0, seen.padded_tokens - seen.tokens);
  auto& shares = explanation.shares;
  shares["fixed_per_micro_step"] = seen.micro_steps * line.fixed / total;
  shares["tokens"] = (seen.padded_tokens - padding) * line.slope / total;
  shares["padding"] = padding * line.slope / total;
  for (const char* phase : {"optimizer", "input", "collective"}) {
    if (seen.phases.contains(phase)) shares[phase] = seen.phase(phase) / total;
  }
  double rest = 1;
  for (const auto& [name, share] : shares) rest -= share;
  shares["residual"] = rest;
}

void add_row_costs(Explanation& explanation, const std::vector<Observation>& observations) {
  double cheapest = 0;
  for (const Observation& seen : observations) {
    const double cost = seen.compute_seconds() / seen.padded_tokens;
    if (cheapest == 0 || cost < cheapest) cheapest = cost;
  }
  for (const Observation& seen : observations) {
    if (!(cheapest > 0)) return;
    explanation.row_cost.push_back(
        {seen.split.micro_batch, seen.compute_seconds() / seen.padded_tokens / cheapest});
  }
}

std::string sentence_of(const Explanation& explanation, const std::vector<Observation>& observations,
                        const Observation& chosen, const Line& line) {
  const auto slowest = std::max_element(
      observations.begin(), observations.end(),
      [](const Observation& a, const Observation& b) { return a.seconds.mid < b.seconds.mid; });
  if (const double wait = chosen.phase("input") / chosen.seconds.mid; wait > 0.2) {
    return fmt::format(
        "{} of a step of {} is waiting for data: no split mends that, faster data loading does.",
        format_percent(wait, 0), run::to_string(chosen.split));
  }
  if (slowest->split == chosen.split) return "";
  const double slow_share = slowest->micro_steps * line.fixed / slowest->seconds.mid;
  const double chosen_share = explanation.shares.at("fixed_per_micro_step");
  if (slow_share - chosen_share > 0.02) {
    return fmt::format("Every micro-batch costs {} before its first token: {} of a step at {}, {} at {}.",
                       format_seconds(line.fixed), format_percent(slow_share, 0),
                       run::to_string(slowest->split), format_percent(chosen_share, 0),
                       run::to_string(chosen.split));
  }
  const double padding = (slowest->padded_tokens - chosen.padded_tokens) * line.slope / slowest->seconds.mid;
  if (padding > 0.02) {
    return fmt::format("{} computes {} more padding a step than {}.", run::to_string(slowest->split),
                       format_percent(slowest->padded_tokens / chosen.padded_tokens - 1, 0),
                       run::to_string(chosen.split));
  }
  const double dearer =
      slowest->compute_seconds() / slowest->padded_tokens / (chosen.compute_seconds() / chosen.padded_tokens);
  if (!(slowest->seconds.low > chosen.seconds.high)) {
    return fmt::format("The times of {} and {} overlap too much to say why one is slower.",
                       run::to_string(slowest->split), run::to_string(chosen.split));
  }
  return fmt::format(
      "Neither a fixed cost per micro-batch nor padding explains why {} is slower than {}: a token costs "
      "{:.2f} times as "
      "much there, so the sizes of its matrices suit this device less.",
      run::to_string(slowest->split), run::to_string(chosen.split), dearer);
}

// With no token counts the per-token and the per-step part are one constant; the fixed cost is still the
// slope over the number of micro-steps.
void explain_without_tokens(Explanation& explanation, const std::vector<Observation>& observations) {
  explanation.not_separable.push_back(
      {"seconds_per_token",
       "the worker reported no tokens, and at one effective batch they are the same for every split"});
  double sum_a = 0, sum_y = 0, sum_aa = 0, sum_ay = 0;
  const double count = static_cast<double>(observations.size());
  for (const Observation& seen : observations) {
    sum_a += seen.micro_steps;
    sum_y += seen.compute_seconds();
    sum_aa += seen.micro_steps * seen.micro_steps;
    sum_ay += seen.micro_steps * seen.compute_seconds();
  }
  const double spread = sum_aa - sum_a * sum_a / count;
  if (!(spread > 0)) return;
  const double fixed = std::max(0.0, (sum_ay - sum_a * sum_y / count) / spread);
  const double constant = (sum_y - fixed * sum_a) / count;
  explanation.fixed_seconds_per_micro_step = fixed;
  for (const Observation& seen : observations) {
    const double rest = seen.seconds.mid - seen.compute_seconds() + seen.micro_steps * fixed + constant;
    explanation.residuals.push_back(
        {seen.split, seen.seconds.mid - rest, seen.seconds.low - rest, seen.seconds.high - rest});
  }
  explanation.sentence =
      fmt::format("Every micro-batch more in a step costs about {}.", format_seconds(fixed));
}

}  // namespace

Explanation explain(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                    std::optional<run::Split> recommended) {
  Explanation explanation;
  // One line fits splits on the same devices: with more of them, each micro-batch shares the machine with
  // others.
  std::vector<run::Split> comparable(splits.begin(), splits.end());
  if (recommended)
    std::erase_if(comparable, [&](const auto& split) { return split.devices != recommended->devices; });
  const std::vector<Observation> observations = observe(comparable, trials, recommended);
  const bool has_optimizer = !observations.empty() &&
                             std::all_of(observations.begin(), observations.end(),
                                         [](const auto& seen) { return seen.phases.contains("optimizer"); });
  if (has_optimizer) {
    std::vector<double> optimizer;
    for (const Observation& seen : observations) optimizer.push_back(seen.phase("optimizer"));
    explanation.seconds_per_step = median(optimizer);
  } else {
    explanation.not_separable.push_back(
        {"seconds_per_step",
         "the worker reported no optimizer phase, and the rest of a step is the same for every split"});
  }
  explanation.not_separable.push_back({"matrix_efficiency",
                                       "how much a small micro-batch's matrices cost was not measured on its "
                                       "own; row_cost holds it together with the "
                                       "fixed cost"});
  if (observations.size() < 2) {
    explanation.not_separable.push_back(
        {"fixed_seconds_per_micro_step", "fewer than two splits were measured"});
    explanation.not_separable.push_back({"seconds_per_token", "fewer than two splits were measured"});
    return explanation;
  }
  if (std::any_of(observations.begin(), observations.end(),
                  [](const auto& seen) { return !(seen.padded_tokens > 0); })) {
    explain_without_tokens(explanation, observations);
    return explanation;
  }
  add_row_costs(explanation, observations);
  const std::optional<Line> line = fit_line(observations);
  if (!line) {
    explanation.not_separable.push_back(
        {"fixed_seconds_per_micro_step",
         "micro-steps and padded tokens rise together over the measured splits"});
    return explanation;
  }
  explanation.fixed_seconds_per_micro_step = line->fixed;
  explanation.seconds_per_token = line->slope;
  for (const Observation& seen : observations) {
    const double rest = seen.seconds.mid - seen.compute_seconds() + predicted(seen, *line);
    explanation.residuals.push_back(
        {seen.split, seen.seconds.mid - rest, seen.seconds.low - rest, seen.seconds.high - rest});
  }
  for (const Observation& seen : observations) {
    if (!recommended || !(seen.split == *recommended)) continue;
    add_shares(explanation, seen, *line);
    explanation.sentence = sentence_of(explanation, observations, seen, *line);
  }
  return explanation;
}

namespace {

Json maybe(const std::optional<double>& value) { return value ? Json(*value) : Json(); }
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

}  // namespace

Json to_json(const Explanation& explanation) {
  Json row_cost = Json::array(), shares = Json::object(), residuals = Json::array(),
       not_separable = Json::array();
  for (const auto& cost : explanation.row_cost)
    row_cost.push_back({{"rows", cost.rows}, {"relative", cost.relative}});
  for (const auto& [name, share] : explanation.shares) shares[name] = share;
  for (const auto& residual : explanation.residuals) {
    residuals.push_back(
        {{"split", run::to_string(residual.split)},
         {"seconds",
          {{"mid", residual.mid}, {"low", finite(residual.low)}, {"high", finite(residual.high)}}}});
  }
  for (const auto& part : explanation.not_separable) {
    not_separable.push_back({{"part", part.part}, {"reason", part.reason}});
  }
  return {{"fixed_seconds_per_micro_step", maybe(explanation.fixed_seconds_per_micro_step)},
          {"seconds_per_token", maybe(explanation.seconds_per_token)},
          {"seconds_per_step", maybe(explanation.seconds_per_step)},
          {"row_cost", std::move(row_cost)},
          {"shares", std::move(shares)},
          {"residuals", std::move(residuals)},
          {"not_separable", std::move(not_separable)},
          {"sentence", explanation.sentence}};
}

}  // namespace batchwright::tune
