#include "tune/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tune/explain_words.h"
#include "tune/observation.h"

namespace batchwright::tune {
namespace {

// Half the width of a 95 % interval of a normal distribution, in standard deviations.
constexpr double kHalfWidth = 1.96;

struct Fit {
  Line line;
  std::optional<Interval> fixed, slope;  // absent: some split's time has no interval
};

// Padded tokens, weighted by what they cost at the split's row count.
using TokenCost = std::vector<double>;

// Least squares of compute = micro_steps * fixed + tokens * slope, each row divided by its compute. nullopt
// when the two columns are proportional: then no data of this kind can tell them apart.
std::optional<Fit> fit_line(const std::vector<Observation>& observations, const TokenCost& tokens) {
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  std::vector<double> a(observations.size(), 0), b(observations.size(), 0);
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const double y = observations[i].compute_seconds();
    if (!(y > 0)) continue;
    a[i] = observations[i].micro_steps / y, b[i] = tokens[i] / y;
    aa += a[i] * a[i], ab += a[i] * b[i], bb += b[i] * b[i], ay += a[i], by += b[i];
  }
  const double determinant = aa * bb - ab * ab;
  if (!(determinant > 1e-6 * aa * bb)) return std::nullopt;
  Fit fit;
  fit.line = {(ay * bb - by * ab) / determinant, (by * aa - ay * ab) / determinant};
  if (fit.line.fixed < 0) fit.line = {0, by / bb};
  if (fit.line.slope < 0) fit.line = {ay / aa, 0};
  // The estimates are linear in the times, so their variances are weighted sums.
  double fixed_variance = 0, slope_variance = 0;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const Observation& seen = observations[i];
    if (!(seen.compute_seconds() > 0)) continue;
    const double deviation =
        (seen.seconds.high - seen.seconds.low) / (2 * kHalfWidth) / seen.compute_seconds();
    fixed_variance += std::pow((a[i] * bb - b[i] * ab) / determinant * deviation, 2);
    slope_variance += std::pow((b[i] * aa - a[i] * ab) / determinant * deviation, 2);
  }
  if (!std::isfinite(fixed_variance) || !std::isfinite(slope_variance)) return fit;
  const auto around = [](double middle, double variance) {
    const double half = kHalfWidth * std::sqrt(variance);
    return Interval{middle, std::max(0.0, middle - half), middle + half};
  };
  fit.fixed = around(fit.line.fixed, fixed_variance);
  fit.slope = around(fit.line.slope, slope_variance);
  return fit;
}

double predicted(const Observation& seen, double tokens, const Line& line) {
  return seen.micro_steps * line.fixed + tokens * line.slope;
}

void add_shares(Explanation& explanation, const Observation& seen, double tokens, const Line& line) {
  const double total = seen.seconds.mid;
  const double padded_share =
      seen.padded_tokens > 0 ? std::max(0.0, seen.padded_tokens - seen.tokens) / seen.padded_tokens : 0;
  auto& shares = explanation.shares;
  shares["fixed_per_micro_step"] = seen.micro_steps * line.fixed / total;
  shares["tokens"] = (1 - padded_share) * tokens * line.slope / total;
  shares["padding"] = padded_share * tokens * line.slope / total;
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

// The rate of matrices with so many rows relative to the best rate that the machine showed: logarithmic
// between the row counts that were measured, the best shape of each.
double efficiency_at(const hardware::Calibration& calibration, double rows) {
  std::map<std::int64_t, double> best;  // rows -> flops
  for (const hardware::ProductTiming& product : calibration.products)
    best[product.rows] = std::max(best[product.rows], product.flops());
  if (best.empty()) return 1;
  const double peak = calibration.best_flops();
  const auto above = std::find_if(
      best.begin(), best.end(), [&](const auto& entry) { return static_cast<double>(entry.first) >= rows; });
  if (above == best.begin()) return above->second / peak;
  const auto below = std::prev(above);
  if (above == best.end()) return below->second / peak;
  const double position = std::log(rows / static_cast<double>(below->first)) /
                          std::log(static_cast<double>(above->first) / static_cast<double>(below->first));
  return std::exp((1 - position) * std::log(below->second) + position * std::log(above->second)) / peak;
}

// What a padded token costs at each split; fills in matrix_efficiency where it is known.
TokenCost token_costs(Explanation& explanation, const std::vector<Observation>& observations,
                      const hardware::Calibration* calibration) {
  TokenCost costs;
  for (const Observation& seen : observations) costs.push_back(seen.padded_tokens);
  if (calibration == nullptr || calibration->products.empty()) {
    explanation.not_separable.push_back({"matrix_efficiency",
                                         "this machine has no calibration (`batchwright calibrate` makes "
                                         "one), so what small matrices cost is not told apart "
                                         "from the fixed cost of a micro-batch"});
    return costs;
  }
  explanation.efficiency_source = "calibration";
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const double rows = observations[i].padded_tokens / observations[i].micro_steps;
    const double efficiency = efficiency_at(*calibration, rows);
    explanation.matrix_efficiency.push_back({observations[i].split, rows, efficiency});
    costs[i] /= efficiency;
  }
  return costs;
}

// Kernels that do the same work in more time run at a lower rate: the device's busy time says so without a
// shape.
void efficiency_from_busy_time(Explanation& explanation, const std::vector<Observation>& observations) {
  double least = 0;
  for (const Observation& seen : observations) {
    if (!seen.device_busy_share) return;
    const double busy = seen.seconds.mid * *seen.device_busy_share;
    least = least == 0 ? busy : std::min(least, busy);
  }
  if (!(least > 0)) return;
  explanation.efficiency_source = "device busy time";
  explanation.matrix_efficiency.clear();
  for (const Observation& seen : observations)
    explanation.matrix_efficiency.push_back(
        {seen.split, 0, least / (seen.seconds.mid * *seen.device_busy_share)});
}

struct Growth {
  double per_micro_step = 0, per_step = 0;
};

// Least squares of y = micro_steps * per_micro_step + per_step.
std::optional<Growth> growth_of(const std::vector<Observation>& observations, const std::vector<double>& y) {
  double sum_a = 0, sum_y = 0, sum_aa = 0, sum_ay = 0;
  const auto count = static_cast<double>(observations.size());
  for (std::size_t i = 0; i < observations.size(); ++i) {
    const double a = observations[i].micro_steps;
    sum_a += a, sum_y += y[i], sum_aa += a * a, sum_ay += a * y[i];
  }
  const double spread = sum_aa - sum_a * sum_a / count;
  if (!(spread > 0)) return std::nullopt;
  const double slope = (sum_ay - sum_a * sum_y / count) / spread;
  return Growth{slope, (sum_y - slope * sum_a) / count};
}

void add_phase_costs(Explanation& explanation, const std::vector<Observation>& observations) {
  for (const char* phase : {"input", "forward", "loss", "backward", "optimizer", "collective", "residual"}) {
    std::vector<double> y;
    for (const Observation& seen : observations) {
      if (seen.phases.contains(phase)) y.push_back(seen.phase(phase));
    }
    if (y.size() != observations.size()) continue;
    if (const auto growth = growth_of(observations, y))
      explanation.phase_costs.push_back({phase, growth->per_micro_step, growth->per_step});
  }
}

void add_idle(Explanation& explanation, const std::vector<Observation>& observations) {
  for (const Observation& seen : observations) {
    if (const auto idle = seen.idle_seconds())
      explanation.device_idle.push_back({seen.split, *idle, *idle / seen.seconds.mid});
  }
}

void add_residual(Explanation& explanation, const Observation& seen, double explained) {
  const double rest = seen.seconds.mid - seen.compute_seconds() + explained;
  explanation.residuals.push_back(
      {seen.split, seen.seconds.mid - rest, seen.seconds.low - rest, seen.seconds.high - rest});
}

// With no token counts the per-token and the per-step part are one constant; the fixed cost is still the
// slope over the number of micro-steps.
void explain_without_tokens(Explanation& explanation, const std::vector<Observation>& observations) {
  explanation.not_separable.push_back(
      {"seconds_per_token",
       "the worker reported no tokens, and at one effective batch they are the same for every split"});
  if (explanation.matrix_efficiency.empty()) {
    explanation.not_separable.push_back({"matrix_efficiency",
                                         "the worker reported neither tokens nor the device's busy time, so "
                                         "what small matrices cost is part of "
                                         "the fixed cost of a micro-batch"});
  }
  std::vector<double> compute;
  for (const Observation& seen : observations) compute.push_back(seen.compute_seconds());
  const auto growth = growth_of(observations, compute);
  if (!growth) return;
  const double fixed = std::max(0.0, growth->per_micro_step);
  double mean_y = 0, mean_a = 0;
  for (std::size_t i = 0; i < observations.size(); ++i)
    mean_y += compute[i], mean_a += observations[i].micro_steps;
  const double constant = (mean_y - fixed * mean_a) / static_cast<double>(observations.size());
  explanation.fixed_seconds_per_micro_step = fixed;
  for (const Observation& seen : observations)
    add_residual(explanation, seen, seen.micro_steps * fixed + constant);
}

void add_optimizer(Explanation& explanation, const std::vector<Observation>& observations) {
  std::vector<double> optimizer;
  for (const Observation& seen : observations) {
    if (seen.phases.contains("optimizer")) optimizer.push_back(seen.phase("optimizer"));
  }
  if (!optimizer.empty() && optimizer.size() == observations.size()) {
    explanation.seconds_per_step = median(optimizer);
    return;
  }
  explanation.not_separable.push_back(
      {"seconds_per_step",
       "the worker reported no optimizer phase, and the rest of a step is the same for every split"});
}

// nullopt when the line could not be fitted.
std::optional<Line> explain_with_tokens(Explanation& explanation,
                                        const std::vector<Observation>& observations,
                                        const Observation* chosen, const hardware::Calibration* calibration) {
  const TokenCost tokens = token_costs(explanation, observations, calibration);
  add_row_costs(explanation, observations);
  const std::optional<Fit> fit = fit_line(observations, tokens);
  if (!fit) {
    explanation.not_separable.push_back(
        {"fixed_seconds_per_micro_step",
         "micro-steps and padded tokens rise together over the measured splits"});
    return std::nullopt;
  }
  explanation.fixed_seconds_per_micro_step = fit->line.fixed;
  explanation.seconds_per_token = fit->line.slope;
  explanation.fixed_interval = fit->fixed;
  explanation.token_interval = fit->slope;
  for (std::size_t i = 0; i < observations.size(); ++i) {
    add_residual(explanation, observations[i], predicted(observations[i], tokens[i], fit->line));
    if (&observations[i] == chosen) add_shares(explanation, observations[i], tokens[i], fit->line);
  }
  return fit->line;
}

}  // namespace

Explanation explain(std::span<const run::Split> splits, std::span<const run::Trial> trials,
                    std::optional<run::Split> recommended, const ExplainOptions& options) {
  Explanation explanation;
  // One line fits splits on the same devices: with more of them, each micro-batch shares the machine with
  // others.
  std::vector<run::Split> comparable(splits.begin(), splits.end());
  if (recommended)
    std::erase_if(comparable, [&](const auto& split) { return split.devices != recommended->devices; });
  const std::vector<Observation> observations = observe(comparable, trials, recommended);
  const auto found = std::find_if(observations.begin(), observations.end(), [&](const Observation& seen) {
    return recommended && seen.split == *recommended;
  });
  const Observation* chosen = found == observations.end() ? nullptr : &*found;
  add_optimizer(explanation, observations);
  if (chosen != nullptr && options.users_script) explanation.recommendations = recommendations_for(*chosen);
  if (observations.size() < 2) {
    for (const char* part : {"fixed_seconds_per_micro_step", "seconds_per_token", "matrix_efficiency"})
      explanation.not_separable.push_back({part, "fewer than two splits were measured"});
    return explanation;
  }
  add_phase_costs(explanation, observations);
  add_idle(explanation, observations);
  efficiency_from_busy_time(explanation, observations);
  const bool has_tokens = std::all_of(observations.begin(), observations.end(),
                                      [](const Observation& seen) { return seen.padded_tokens > 0; });
  std::optional<Line> line;
  if (has_tokens) {
    line = explain_with_tokens(explanation, observations, chosen, options.calibration);
  } else {
    explain_without_tokens(explanation, observations);
  }
  if (chosen != nullptr)
    explanation.sentence = sentence_of(explanation, observations, *chosen, line ? &*line : nullptr);
  return explanation;
}

}  // namespace batchwright::tune
