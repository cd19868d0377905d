#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

// Straight line through (0, values[0]), (1, values[1]), ...: slope, value at 0 and the share of variance
// explained.
struct Line {
  double slope = 0, start = 0, explained = 0;
};

Line fit(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i), y = values[i];
    sx += x, sy += y, sxx += x * x, sxy += x * y, syy += y * y;
  }
  const double dx = n * sxx - sx * sx, dy = n * syy - sy * sy, dxy = n * sxy - sx * sy;
  if (dx <= 0 || dy <= 0) return {};
  const double slope = dxy / dx;
  return {slope, (sy - slope * sx) / n, dxy * dxy / (dx * dy)};
}

// A sum that nobody clears grows in proportion to the number of steps: from near zero, in a straight line.
bool grows_like_a_sum(const std::vector<double>& norms) {
  if (norms.size() < 8) return false;
  const Line line = fit(norms);
  const double end = line.start + line.slope * static_cast<double>(norms.size() - 1);
  return line.slope > 0 && line.explained > 0.9 && line.start < 0.25 * end &&
         norms.back() > 4 * std::max(norms.front(), 1e-12);
}

bool loss_is_sound(const LoggedRun& run) {
  std::vector<double> early, late;
  const auto& train = run.log.train;
  for (std::size_t i = 0; i < train.size(); ++i)
    (i < train.size() / 2 ? early : late).push_back(train[i].loss);
  const double a = median(early), b = median(late);
  return std::isnan(a) || std::isnan(b) || b < 1.2 * a;
}

}  // namespace

void check_gradient_norms(const LoggedRun& run, FindingList& found) {
  std::vector<double> norms;
  std::vector<std::vector<double>> epochs(1);
  double epoch = kUnknown;
  for (const LogRecord& record : run.log.train) {
    if (!(record.grad_norm > 0) || std::isinf(record.grad_norm)) continue;
    if (!std::isnan(epoch) && std::floor(record.epoch) > epoch) epochs.emplace_back();
    if (!std::isnan(record.epoch)) epoch = std::floor(record.epoch);
    norms.push_back(record.grad_norm);
    epochs.back().push_back(record.grad_norm);
  }
  if (norms.size() < 5) return;
  const double middle = median(norms);
  // The scaler starts at 65536 (torch.amp.GradScaler) and rarely stays below 2048.
  const bool scaled = (run.fp16 && middle > 3000) || middle > 20'000;
  std::vector<double> losses;
  for (const LogRecord& record : run.log.train) losses.push_back(record.loss);
  if (scaled && loss_is_sound(run) && !(median(losses) > 20)) {
    Finding& f = found.add("clip_before_unscale", run.log.file, run.log.line);
    f.what = fmt::format(
        "the gradient norm is {:.3g} while the loss is sound ({:.3g}): it still carries the loss scale",
        middle, median(losses));
    return;
  }
  if (!loss_is_sound(run)) return;
  const bool whole = norms.size() >= 12 && grows_like_a_sum(norms);
  const auto long_epochs =
      std::count_if(epochs.begin(), epochs.end(), [](const auto& e) { return e.size() >= 8; });
  const bool each = long_epochs >= 2 && std::all_of(epochs.begin(), epochs.end(), [](const auto& e) {
                      return e.size() < 8 || grows_like_a_sum(e);
                    });
  if (!whole && !each) return;
  Finding& f = found.add("missing_zero_grad", run.log.file, run.log.line);
  f.what = fmt::format(
      "the gradient norm grows in a straight line{}, from {:.3g} to {:.3g}, while the loss does not",
      each && !whole ? " within each epoch" : "", norms.front(), norms.back());
}

}  // namespace batchwright::check
