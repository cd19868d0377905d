#include "tune/step_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace batchwright::tune {
namespace {

// Fingerprints add up, as the values behind them do.
std::uint64_t fingerprint_value(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

std::optional<StepView> view_of(const std::map<int, run::StepReport>& ranks) {
  StepView view;
  std::uint64_t data = 0;
  double loss = 0;
  bool has_loss = true;
  for (const auto& [rank, report] : ranks) {
    if (!report.evidence) return std::nullopt;
    const run::StepEvidence& evidence = *report.evidence;
    view.all_ranks.push_back(&evidence);
    data = (data + fingerprint_value(evidence.data)) % (1ull << 62);
    for (const run::MicroStepEvidence& micro : evidence.micro_steps) view.examples += micro.examples;
    has_loss = has_loss && evidence.loss().has_value();
    loss += evidence.loss().value_or(0);
  }
  if (view.all_ranks.empty()) return std::nullopt;
  view.leader = view.all_ranks.front();
  view.gradient_norm = view.leader->gradient_norm();
  view.learning_rate = ranks.begin()->second.learning_rate.value_or(0);
  view.data = fmt::format("{:016x}", data);
  if (has_loss) view.loss = loss / static_cast<double>(view.all_ranks.size());
  return view;
}

}  // namespace

std::optional<double> StepView::label_weighted_loss() const {
  if (least_labels() == 0 || least_labels() == most_labels()) return std::nullopt;
  double sum = 0, labels = 0;
  for (const run::StepEvidence* evidence : all_ranks) {
    for (const run::MicroStepEvidence& micro : evidence->micro_steps) {
      if (!micro.loss) return std::nullopt;
      const auto count = static_cast<double>(micro.labels);
      sum += count * *micro.loss * static_cast<double>(evidence->micro_steps.size());
      labels += count;
    }
  }
  return sum / labels;
}

std::int64_t StepView::least_labels() const {
  std::int64_t least = INT64_MAX;
  for (const run::StepEvidence* evidence : all_ranks) {
    for (const run::MicroStepEvidence& micro : evidence->micro_steps) least = std::min(least, micro.labels);
  }
  return least == INT64_MAX ? 0 : least;
}

std::int64_t StepView::most_labels() const {
  std::int64_t most = 0;
  for (const run::StepEvidence* evidence : all_ranks) {
    for (const run::MicroStepEvidence& micro : evidence->micro_steps) most = std::max(most, micro.labels);
  }
  return most;
}

std::vector<StepView> step_views(const run::ObservedRun& run) {
  std::vector<StepView> views;
  for (const auto& ranks : run.steps) {
    auto view = view_of(ranks);
    if (!view || view->leader->micro_steps.empty()) break;
    views.push_back(std::move(*view));
  }
  return views;
}

StepTolerance first_step_tolerance(const StepView& step) {
  return step.leader->reduced_precision ? StepTolerance{2e-2, 5e-2} : StepTolerance{1e-4, 1e-3};
}

StepTolerance later_step_tolerance() { return {2e-2, 1e-1}; }

bool same_step(const StepView& a, const StepView& b, StepTolerance tolerance) {
  if (!a.loss || !b.loss || !a.gradient_norm || !b.gradient_norm) return false;
  const auto near = [](double x, double y, double relative) {
    return std::abs(x - y) <= relative * std::max(std::abs(x), std::abs(y));
  };
  return near(*a.loss, *b.loss, tolerance.loss) &&
         near(*a.gradient_norm, *b.gradient_norm, tolerance.gradient);
}

}  // namespace batchwright::tune
