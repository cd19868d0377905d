#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

// A learning rate read at a fraction of the run, as a share of the peak.
struct Point {
  double at, share;
};

// One explanation of the curve: the schedule runs `speed` times too fast, or its warm-up is `stretch` times
// as long.
struct Hypothesis {
  double speed, stretch;
  const char* kind;  // nullptr: nothing is wrong
  std::string meaning;
};

enum class Beyond { Stays, Returns };  // a cosine past its end: clamped, or rising again

// transformers.optimization's schedules with warm-up, over the fraction p of the declared length.
double shape(const std::string& family, double p, double warmup, Beyond beyond) {
  if (warmup > 0 && p < warmup) return p / warmup;
  if (family == "constant") return 1;
  const double rest = warmup < 1 ? (p - warmup) / (1 - warmup) : 1;
  if (family == "linear") return std::max(0.0, 1 - rest);
  if (rest > 1 && beyond == Beyond::Stays) return 0;
  return std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * rest)));
}

// Root mean square distance of the points from the curve.
double distance(const std::vector<Point>& points, const std::string& family, double warmup,
                const Hypothesis& h) {
  double best = 1e9;
  for (const Beyond beyond : {Beyond::Stays, Beyond::Returns}) {
    double sum = 0;
    for (const Point& point : points) {
      const double p = point.at * h.speed;
      const double w = std::min(warmup * h.stretch, 1e6);
      const double error = point.share - shape(family, p, w, beyond);
      sum += error * error;
    }
    best = std::min(best, std::sqrt(sum / static_cast<double>(points.size())));
  }
  return best;
}

std::vector<Point> points_of(const LoggedRun& run, double peak) {
  std::vector<Point> points;
  for (const LogRecord& record : run.log.train) {
    const std::optional<double> at = run.progress(record);
    if (at && !std::isnan(record.learning_rate) && *at <= 1.001)
      points.push_back({*at, record.learning_rate / peak});
  }
  return points;
}

std::vector<Hypothesis> hypotheses(const LoggedRun& run) {
  std::vector<Hypothesis> all;
  const double a = run.accumulation.value_or(1), w = run.processes.value_or(1);
  const auto add = [&](double speed, double stretch, const char* kind, std::string meaning) {
    all.push_back({speed, stretch, kind, std::move(meaning)});
  };
  if (a > 1) {
    add(a, 1, "sched_per_micro_step",
        fmt::format("the schedule runs {:g} times too fast: it steps with every micro-batch", a));
    add(1 / a, 1, "sched_units",
        fmt::format("the schedule runs {:g} times too slowly: its length counts micro-batches", a));
    add(1, a, "sched_units",
        fmt::format("warm-up lasts {:g} times as long as declared: it counts micro-batches", a));
    add(1, 1 / a, "sched_per_micro_step",
        fmt::format("warm-up is over {:g} times too early: it counts micro-batches", a));
  }
  if (w > 1) {
    add(w, 1, "sched_world_size",
        fmt::format("the schedule runs {:g} times too fast: it advances once per process", w));
    add(1 / w, 1, "steps_world_size",
        fmt::format("the schedule runs {:g} times too slowly: its length ignores the processes", w));
    add(1, 1 / w, "sched_world_size",
        fmt::format("warm-up is over {:g} times too early: it advances once per process", w));
  }
  if (a > 1 && w > 1) {
    add(a * w, 1, "sched_per_micro_step",
        fmt::format("the schedule runs {:g} times too fast: once per micro-batch and process", a * w));
    add(1 / (a * w), 1, "sched_units",
        fmt::format("the schedule runs {:g} times too slowly: its length counts micro-batches of one process",
                    a * w));
  }
  return all;
}

double declared_warmup(const LoggedRun& run) {
  const std::optional<double> total = run.steps_in_all();
  if (run.warmup_steps && *run.warmup_steps > 0 && total && *total > 0) return *run.warmup_steps / *total;
  return run.warmup_ratio.value_or(0);
}

bool fault(const LoggedRun& run, const Hypothesis& h, double error, double right_error, FindingList& found) {
  Finding& f = found.add(h.kind, run.log.file, run.log.line);
  f.what = h.meaning;
  f.consequence = fmt::format(
      "it fits the logged learning rate within {:.1f} % of its peak, the declared schedule only within "
      "{:.0f} %",
      100 * error, 100 * right_error);
  return true;
}

// Declared family, length and warm-up: compare every explanation, and speak only when one fits and the right
// one does not.
bool against_declared(const LoggedRun& run, double peak, FindingList& found) {
  if (run.schedule.empty()) return false;
  const std::vector<Point> points = points_of(run, peak);
  if (points.size() < 5) return false;
  const double warmup = declared_warmup(run);
  const bool warmup_known = run.warmup_steps || run.warmup_ratio;
  // Warm-up steps of an unknown total: the share is read off the curve, and tells nothing by itself.
  const bool open_warmup = run.warmup_steps && *run.warmup_steps > 0 && !run.steps_in_all();
  const double seen_warmup =
      std::max_element(points.begin(), points.end(), [](const Point& x, const Point& y) {
        return x.share < y.share;
      })->at;
  const auto error_of = [&](const Hypothesis& h) {
    return distance(points, run.schedule, open_warmup ? seen_warmup * h.speed : warmup, h);
  };
  // A log may show the rate before or after the step: half a logging interval either way is no fault.
  const double right = error_of({1, 1, nullptr, ""});
  if (right < 0.08) return true;
  const Hypothesis* best = nullptr;
  double best_error = 1e9;
  const std::vector<Hypothesis> all = hypotheses(run);
  for (const Hypothesis& h : all) {
    if (h.stretch != 1 && (!warmup_known || warmup <= 0)) continue;
    const double error = error_of(h);
    if (error < best_error) best = &h, best_error = error;
  }
  if (best != nullptr && best_error < 0.035 && best_error < right / 3)
    return fault(run, *best, best_error, right, found);
  return false;
}

// Records of a run that went on to its end: the last one stands at 97 % or later.
bool complete(const LoggedRun& run) {
  if (run.log.train.empty()) return false;
  const auto at = run.progress(run.log.train.back());
  return at && *at >= 0.97;
}

// The rate reached zero long before the end and stayed there.
bool floor_too_early(const LoggedRun& run, double peak, FindingList& found) {
  const std::vector<Point> points = points_of(run, peak);
  if (points.size() < 8 || !complete(run) || run.schedule == "constant" || run.schedule == "other")
    return false;
  std::size_t first_zero = points.size();
  while (first_zero > 0 && points[first_zero - 1].share < 1e-3) --first_zero;
  if (first_zero == 0 || points.size() - first_zero < 3) return false;
  const double end = points[first_zero].at;
  if (end > 0.75) return false;
  const double factor = 1 / end;
  const double a = run.accumulation.value_or(0), w = run.processes.value_or(0);
  const bool micro = a > 1 && within_factor(factor, a, 0.15), world = w > 1 && within_factor(factor, w, 0.15);
  Finding& f =
      found.add(world && !micro ? "sched_world_size" : "sched_per_micro_step", run.log.file, run.log.line);
  f.what =
      fmt::format("the learning rate is at its floor after {:.0f} % of the run and stays there", 100 * end);
  f.consequence = fmt::format("the schedule runs {:.2g} times too fast{}", factor,
                              micro   ? ": once per micro-batch"
                              : world ? ": once per process"
                                      : "");
  return true;
}

// A straight rise to the last step.
bool rises_to_the_end(const LoggedRun& run, FindingList& found) {
  std::vector<double> rates;
  for (const LogRecord& record : run.log.train) {
    if (!std::isnan(record.learning_rate)) rates.push_back(record.learning_rate);
  }
  if (rates.size() < 5 || rates.front() <= 0 - 1e-12 || rates.back() <= 0) return false;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    if (rates[i] <= rates[i - 1]) return false;
  }
  const bool short_of_peak = run.learning_rate && rates.back() < 0.97 * *run.learning_rate;
  const std::optional<double> total = run.steps_in_all();
  const bool declared_longer = run.warmup_steps && total && *run.warmup_steps >= *total;
  if (!complete(run) || !(short_of_peak || declared_longer || !run.learning_rate)) return false;
  if (rates.back() < 1.5 * rates.front()) return false;
  Finding& f = found.add("warmup_gt_total", run.log.file, run.log.line);
  f.what =
      fmt::format("the learning rate rises to the last step{}",
                  run.learning_rate ? fmt::format(": {:g} of {:g}", rates.back(), *run.learning_rate) : "");
  if (run.warmup_steps && total)
    f.consequence =
        fmt::format("warm-up of {:g} steps in a run of {:g}: the declared learning rate is never reached",
                    *run.warmup_steps, *total);
  return true;
}

// Without a declared schedule: a straight fall that would reach zero only at a multiple of the run's length.
bool ends_high(const LoggedRun& run, double peak, FindingList& found) {
  if (!complete(run) || !(run.schedule.empty() || run.schedule == "linear")) return false;
  const std::vector<Point> points = points_of(run, peak);
  if (points.size() < 8 || points.back().share < 0.2) return false;
  const auto top = std::max_element(points.begin(), points.end(),
                                    [](const Point& x, const Point& y) { return x.share < y.share; });
  const std::vector<Point> fall(top, points.end());
  if (fall.size() < 6 || fall.front().share - fall.back().share < 0.02) return false;
  const double slope = (fall.back().share - fall.front().share) / (fall.back().at - fall.front().at);
  for (const Point& point : fall) {
    if (std::abs(fall.front().share + slope * (point.at - fall.front().at) - point.share) > 0.01)
      return false;
  }
  const double zero = fall.front().at - fall.front().share / slope;  // where it would reach zero, in runs
  const double a = run.accumulation.value_or(0), w = run.processes.value_or(0);
  const bool micro = a > 1 && within_factor(zero, a, 0.06), world = w > 1 && within_factor(zero, w, 0.06);
  if (!micro && !world) return false;
  Finding& f = found.add(micro ? "sched_units" : "steps_world_size", run.log.file, run.log.line);
  f.what = fmt::format(
      "the learning rate ends at {:.0f} % of its peak: it falls towards zero at {:.2f} times the run's "
      "length",
      100 * points.back().share, zero);
  f.consequence =
      micro ? fmt::format("the schedule's length counts micro-batches, {:g} for each optimizer step", a)
            : fmt::format("the schedule's length ignores the {:g} processes", w);
  return true;
}

}  // namespace

void check_schedule(const LoggedRun& run, FindingList& found) {
  double seen = 0;
  int rates = 0;
  for (const LogRecord& record : run.log.train) {
    if (std::isnan(record.learning_rate)) continue;
    seen = std::max(seen, record.learning_rate);
    ++rates;
  }
  if (rates < 5 || seen <= 0) return;
  if (rises_to_the_end(run, found)) return;
  // A declared rate far from the logged one is the arguments' of another parameter group: use what is seen.
  const double peak = run.learning_rate && seen <= *run.learning_rate * 1.001 ? *run.learning_rate : seen;
  if (against_declared(run, peak, found)) return;
  if (floor_too_early(run, seen, found)) return;
  ends_high(run, seen, found);
}

}  // namespace batchwright::check
