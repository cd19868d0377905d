#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

struct Ratios {
  std::vector<double> loss, norm;
  double spread() const {  // largest over smallest, without the outer tenth on each side
    std::vector<double> sorted = loss;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t cut = sorted.size() / 10;
    return sorted[sorted.size() - 1 - cut] / sorted[cut];
  }
};

constexpr std::size_t kMostPairs = 60;

void add_ratio(Ratios& ratios, const LogRecord& plain, const LogRecord& other) {
  if (plain.loss > 0 && other.loss > 0) ratios.loss.push_back(other.loss / plain.loss);
  if (plain.grad_norm > 0 && other.grad_norm > 0) ratios.norm.push_back(other.grad_norm / plain.grad_norm);
}

// Records of the same step where both logs count steps and the batches are equal; else of the same epoch;
// else in order.
Ratios match(const LoggedRun& plain, const LoggedRun& other) {
  Ratios ratios;
  const auto& a = plain.log.train;
  const auto& b = other.log.train;
  const bool same_batch =
      !plain.effective_batch || !other.effective_batch || *plain.effective_batch == *other.effective_batch;
  const auto has = [](const std::vector<LogRecord>& records, double LogRecord::* field) {
    return !records.empty() && !std::isnan(records.front().*field) && !std::isnan(records.back().*field);
  };
  double LogRecord::* key = nullptr;
  if (same_batch && has(a, &LogRecord::step) && has(b, &LogRecord::step))
    key = &LogRecord::step;
  else if (has(a, &LogRecord::epoch) && has(b, &LogRecord::epoch) && a.back().epoch > 0)
    key = &LogRecord::epoch;
  if (key == nullptr) {
    for (std::size_t i = 0; i < std::min({a.size(), b.size(), kMostPairs}); ++i)
      add_ratio(ratios, a[i], b[i]);
    return ratios;
  }
  for (const LogRecord& record : b) {
    const auto near = std::min_element(a.begin(), a.end(), [&](const LogRecord& x, const LogRecord& y) {
      return std::abs(x.*key - record.*key) < std::abs(y.*key - record.*key);
    });
    const double slack = key == &LogRecord::step ? 0.5 : 0.02 + 0.02 * record.*key;
    if (near == a.end() || !(std::abs((*near).*key - record.*key) <= slack)) continue;
    add_ratio(ratios, *near, record);
    if (ratios.loss.size() >= kMostPairs) break;
  }
  // Different intervals can leave no common step: then the starts are compared, unless one log continues the
  // other.
  const bool apart =
      !a.empty() && !b.empty() && (a.back().*key < b.front().*key || b.back().*key < a.front().*key);
  if (ratios.loss.empty() && !a.empty() && !b.empty() && !apart) add_ratio(ratios, a.front(), b.front());
  return ratios;
}

std::string between(const LoggedRun& plain, const LoggedRun& other, const Ratios& ratios, double loss,
                    double norm) {
  return fmt::format("against {}: loss x {:.3g}{} over {} records", plain.log.name, loss,
                     std::isnan(norm) ? "" : fmt::format(", gradient norm x {:.3g}", norm),
                     ratios.loss.size()) +
         (other.accumulation && plain.accumulation
              ? fmt::format(" (accumulation {:g} against {:g})", *other.accumulation, *plain.accumulation)
              : "");
}

// Factors that a mistake with accumulation can put between the runs: their accumulation steps' ratio when
// both make it, the accumulation steps themselves when the other run is right.
std::vector<double> factors(const LoggedRun& plain, const LoggedRun& accumulated) {
  std::vector<double> all;
  const double a = accumulated.accumulation.value_or(0);
  if (plain.accumulation && a / *plain.accumulation >= 1.9) all.push_back(a / *plain.accumulation);
  const bool fewer = !plain.accumulation || *plain.accumulation < a;
  if (a >= 1.9 && fewer && (all.empty() || all[0] != a)) all.push_back(a);
  return all;
}

using Report = std::function<void(const char*, std::string)>;

// Whether k, or 1 / k, is what stands between the runs, in the loss or in the gradient.
bool by_factor(const LoggedRun& plain, const LoggedRun& accumulated, const Ratios& ratios, double loss,
               double norm, double k, const Report& report) {
  const bool norm_known = !std::isnan(norm);
  if (within_factor(loss, k, 0.25)) {
    const bool norm_too = !norm_known || norm > 1.5;
    report(norm_too ? "loss_times_accum" : "log_factor",
           norm_too
               ? fmt::format(
                     "both grow with the accumulation steps, {:g} times: micro-batch losses are summed", k)
               : std::string("the gradient is right, only the report is multiplied"));
    return true;
  }
  if (within_factor(loss * k, 1, 0.25)) {
    const bool norm_too = norm_known && norm < 0.67;
    report(norm_too ? "double_division" : "log_divided_twice",
           norm_too
               ? std::string("loss and gradient are divided by the accumulation steps once too often")
               : fmt::format("the reported loss is 1/{:g} of the other run's: divided once too often", k));
    return true;
  }
  if (!within_factor(loss, 1, 0.3) || !norm_known) return false;
  const double all = median(ratios.norm);
  const bool same_batch = !plain.effective_batch || !accumulated.effective_batch ||
                          *plain.effective_batch == *accumulated.effective_batch;
  if (!same_batch && ratios.norm.size() < 3) return false;
  // A larger batch has a smaller norm by noise, never one k times as large.
  if (within_factor(all, k, 0.35) && within_factor(norm, k, 0.5)) {
    report(
        "no_division",
        fmt::format(
            "the loss agrees, the gradient is {:g} times too large: it is not divided where it counts", k));
    return true;
  }
  if (same_batch && within_factor(all * k, 1, 0.35) && within_factor(norm * k, 1, 0.5)) {
    report("double_division",
           fmt::format("the loss agrees, the gradient is 1/{:g}: divided once too often", k));
    return true;
  }
  return false;
}

}  // namespace

void check_pair(const LoggedRun& plain, const LoggedRun& accumulated, FindingList& found) {
  const Ratios ratios = match(plain, accumulated);
  if (ratios.loss.empty()) return;
  // The first records tell most: later ones follow two trainings that drift apart.
  const std::vector<double> start(
      ratios.loss.begin(),
      ratios.loss.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(ratios.loss.size(), 8)));
  const std::vector<double> start_norm(
      ratios.norm.begin(),
      ratios.norm.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(ratios.norm.size(), 8)));
  const double loss = median(start), norm = median(start_norm);
  const double world =
      plain.processes && accumulated.processes ? *accumulated.processes / *plain.processes : 0;
  const Report report = [&](const char* kind, std::string consequence) {
    Finding& f = found.add(kind, accumulated.log.file, accumulated.log.line);
    f.what = between(plain, accumulated, ratios, loss, norm);
    if (!consequence.empty()) f.consequence = std::move(consequence);
  };
  for (const double k : factors(plain, accumulated)) {
    if (by_factor(plain, accumulated, ratios, loss, norm, k, report)) return;
  }
  if (within_factor(loss, 1, 0.3)) return;
  if (world >= 1.9 && (within_factor(loss, world, 0.15) || within_factor(loss * world, 1, 0.15)))
    return report("loss_constant_factor", "the factor is the number of processes");
  const bool steady = ratios.loss.size() >= 3 && ratios.spread() < 1.25;
  if (steady && (loss >= 1.6 || loss <= 0.62))
    report("loss_constant_factor", "one constant stands between the two runs");
}

void check_comparison(const std::vector<TableRow>& rows, std::size_t file, FindingList& found) {
  std::vector<TableRow> with_loss;
  for (const TableRow& row : rows) {
    if (row.loss > 0 && row.accumulation >= 1) with_loss.push_back(row);
  }
  if (with_loss.size() < 2) return;
  const auto by_steps = [](const TableRow& x, const TableRow& y) { return x.accumulation < y.accumulation; };
  const TableRow low = *std::min_element(with_loss.begin(), with_loss.end(), by_steps),
                 high = *std::max_element(with_loss.begin(), with_loss.end(), by_steps);
  const double k = high.accumulation / low.accumulation;
  if (k < 1.9) return;
  const double ratio = high.loss / low.loss;
  std::vector<double> per_step;
  for (const TableRow& row : with_loss) per_step.push_back(row.loss / row.accumulation);
  const double spread = *std::max_element(per_step.begin(), per_step.end()) /
                        *std::min_element(per_step.begin(), per_step.end());
  if (ratio >= 1.6 && (spread < 1.8 || within_factor(ratio, k, 0.5))) {
    Finding& f = found.add("loss_times_accum", file, high.line);
    f.what = fmt::format("the loss grows with the accumulation steps: {:.4g} at {:g}, {:.4g} at {:g}",
                         low.loss, low.accumulation, high.loss, high.accumulation);
  } else if (within_factor(ratio * k, 1, 0.4)) {
    Finding& f = found.add("log_divided_twice", file, high.line);
    f.what = fmt::format("the loss falls with the accumulation steps: {:.4g} at {:g}, {:.4g} at {:g}",
                         low.loss, low.accumulation, high.loss, high.accumulation);
  } else if (low.grad_norm > 0 && high.grad_norm > 0 &&
             within_factor(high.grad_norm / low.grad_norm, k, 0.4)) {
    Finding& f = found.add("no_division", file, high.line);
    f.what =
        fmt::format("the gradient norm grows with the accumulation steps: {:.4g} at {:g}, {:.4g} at {:g}",
                    low.grad_norm, low.accumulation, high.grad_norm, high.accumulation);
  }
}

}  // namespace batchwright::check
