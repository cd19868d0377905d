#include "tune/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tune/run_comparison.h"
#include "tune/step_comparison.h"

namespace batchwright::tune {
namespace {

using run::ObservedRun;
using run::Outcome;

void add_numbers(SplitComparison& comparison, const ObservedRun& run, const ObservedRun& reference) {
  const auto steps = step_views(run), wanted = step_views(reference);
  for (const StepView& step : steps) {
    comparison.losses.push_back(step.loss.value_or(NAN));
    comparison.gradient_norms.push_back(step.gradient_norm.value_or(NAN));
  }
  for (std::size_t i = 0; i < std::min(steps.size(), wanted.size()); ++i) {
    if (steps[i].data != wanted[i].data || !steps[i].loss || !wanted[i].loss) break;
    const auto widen = [](std::optional<double>& most, double value) {
      most = std::max(most.value_or(0), value);
    };
    widen(comparison.loss_difference, std::abs(*steps[i].loss / *wanted[i].loss - 1));
    if (steps[i].gradient_norm && wanted[i].gradient_norm)
      widen(comparison.gradient_difference, std::abs(*steps[i].gradient_norm / *wanted[i].gradient_norm - 1));
  }
  if (steps.empty() || wanted.empty() || !steps[0].loss || !wanted[0].loss) return;
  comparison.loss_factor = *steps[0].loss / *wanted[0].loss;
  if (steps[0].gradient_norm && wanted[0].gradient_norm)
    comparison.gradient_factor = *steps[0].gradient_norm / *wanted[0].gradient_norm;
}

Equivalent worst_of(const std::vector<SplitComparison>& splits) {
  const auto any = [&](Equivalent verdict) {
    return std::any_of(splits.begin(), splits.end(),
                       [&](const auto& split) { return split.verdict == verdict; });
  };
  if (any(Equivalent::Different)) return Equivalent::Different;
  return any(Equivalent::CannotTell) || splits.size() < 2 ? Equivalent::CannotTell : Equivalent::Same;
}

}  // namespace

std::string_view equivalent_name(Equivalent verdict) {
  return verdict == Equivalent::Same        ? "same"
         : verdict == Equivalent::Different ? "different"
                                            : "cannot_tell";
}

Equivalence compare_runs(std::span<const ObservedRun> runs, const ObservedRun* repeat) {
  Equivalence result;
  const auto reference = std::find_if(
      runs.begin(), runs.end(), [](const ObservedRun& run) { return run.outcome == Outcome::Measured; });
  for (const ObservedRun& run : runs) {
    SplitComparison comparison;
    comparison.split = run.split;
    comparison.is_reference = reference != runs.end() && &run == &*reference;
    Judgement judgement;
    if (run.outcome != Outcome::Measured) {
      judgement.why = fmt::format("{}: {}", run::outcome_words(run.outcome), run.reason);
    } else {
      judgement = comparison.is_reference ? judge_reference(run) : judge_against(run, *reference, repeat);
      add_numbers(comparison, run, *reference);
    }
    comparison.verdict = judgement.verdict;
    comparison.kind = judgement.kind;
    comparison.why = judgement.why;
    comparison.fix = judgement.fix;
    result.needs_repeat = result.needs_repeat || judgement.unexplained;
    result.splits.push_back(std::move(comparison));
  }
  result.verdict = worst_of(result.splits);
  return result;
}

Json to_json(const SplitComparison& comparison) {
  const auto finite = [](const std::optional<double>& value) {
    return value && std::isfinite(*value) ? Json(*value) : Json();
  };
  const auto list = [&](const std::vector<double>& values) {
    Json result = Json::array();
    for (const double value : values) result.push_back(finite(value));
    return result;
  };
  return {{"micro_batch", comparison.split.micro_batch},
          {"accumulation_steps", comparison.split.accumulation_steps},
          {"devices", comparison.split.devices},
          {"layout", nullptr},
          {"micro_tokens", nullptr},
          {"checkpointing", nullptr},
          {"reference", comparison.is_reference},
          {"max_relative_gradient_difference", finite(comparison.gradient_difference)},
          {"worst_tensor", nullptr},
          {"loss_difference", finite(comparison.loss_difference)},
          {"factor", finite(comparison.gradient_factor)},
          {"loss_factor", finite(comparison.loss_factor)},
          {"losses", list(comparison.losses)},
          {"gradient_norms", list(comparison.gradient_norms)},
          {"kind", comparison.kind.empty() ? Json() : Json(comparison.kind)},
          {"why", comparison.why},
          {"fix", comparison.fix.empty() ? Json() : Json(comparison.fix)},
          {"verdict", equivalent_name(comparison.verdict)}};
}

}  // namespace batchwright::tune
