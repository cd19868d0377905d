#include "tune/run_mistakes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace batchwright::tune {

using run::ObservedRun;

Judgement mistake(const char* kind, std::string why, std::string fix) {
  return {Equivalent::Different, kind, std::move(why), std::move(fix), false};
}

namespace {

std::optional<Judgement> wrong_split(const ObservedRun& run, const std::vector<StepView>& steps) {
  std::size_t micro_steps = 0;
  std::int64_t examples = 0;
  for (const StepView& step : steps) {
    micro_steps = std::max(micro_steps, step.micro_steps());
    examples = std::max(examples, step.examples);
  }
  const auto asked = static_cast<std::size_t>(run.split.accumulation_steps);
  if (micro_steps == 1 && asked > 1) {
    return mistake(
        "apply_inside_loop",
        fmt::format("the optimizer steps after every micro-batch: the effective batch is {}, not {}",
                    examples, run.split.effective_batch()),
        "step, and zero the gradients, once after all accumulation steps");
  }
  if (steps.front().micro_steps() == 1 && micro_steps == asked && asked > 1) {
    return mistake("off_by_one_boundary",
                   fmt::format("the first step comes after 1 micro-batch, later ones after {}", asked),
                   "count from 1: step when (i + 1) % accumulation steps is 0");
  }
  const bool wrong_examples = examples > 0 && steps.front().examples != run.split.effective_batch();
  if (steps.front().micro_steps() == asked && !wrong_examples) return std::nullopt;
  return Judgement{
      Equivalent::CannotTell, "",
      fmt::format("asked for {}, and saw {} micro-steps and {} examples in the first step",
                  run::to_string(run.split), steps.front().micro_steps(), steps.front().examples),
      "let the command take {micro} and {accum}", false};
}

// The micro-batches before the first that met zeroed gradients, when a whole window follows: the rest of an
// epoch.
std::size_t dropped_micro_batches(const std::vector<run::MicroStepEvidence>& micro, std::size_t asked) {
  if (micro.size() <= asked) return 0;
  const std::size_t left = micro.size() - asked;
  for (std::size_t k = 1; k < micro.size(); ++k) {
    if ((micro[k].gradient_before.value_or(-1) == 0) != (k == left)) return 0;
  }
  return left;
}

std::optional<Judgement> gradients_lost_or_kept(const ObservedRun& run, const std::vector<StepView>& steps) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& micro = steps[i].leader->micro_steps;
    const auto asked = static_cast<std::size_t>(run.split.accumulation_steps);
    if (const std::size_t left = dropped_micro_batches(micro, asked); left > 0) {
      return mistake(
          "tail_dropped",
          fmt::format("the last {} micro-batches of an epoch, before step {}, are zeroed without a step",
                      left, i + 1),
          "step after the last micro-batch of an epoch, or let the loader drop the last batch at every "
          "split");
    }
    for (std::size_t k = 0; k < micro.size(); ++k) {
      const double before = micro[k].gradient_before.value_or(-1);
      if (k > 0 && before == 0 && micro[k - 1].gradient_after.value_or(0) > 0) {
        return mistake(
            "zero_grad_in_window",
            fmt::format("the gradient is zeroed inside the window: at step {} that of micro-batch {} "
                        "was gone before micro-batch {} added to it",
                        i + 1, k, k + 1),
            "zero the gradients after the optimizer step only");
      }
      if (k == 0 && i > 0 && before > 0) {
        return mistake("missing_zero_grad",
                       fmt::format("step {} starts with the gradient of the step before", i + 1),
                       "zero the gradients after each optimizer step");
      }
    }
  }
  return std::nullopt;
}

std::optional<Judgement> clipped_or_leaked(const ObservedRun& run, const std::vector<StepView>& steps) {
  const auto asked = static_cast<std::size_t>(run.split.accumulation_steps);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::size_t micro_steps = steps[i].micro_steps();
    if (micro_steps > 1 && steps[i].leader->clippings >= static_cast<std::int64_t>(micro_steps)) {
      return mistake("clip_per_micro_step",
                     fmt::format("the gradient is clipped {} times in a step of {} micro-batches",
                                 steps[i].leader->clippings, micro_steps),
                     "clip once, just before the optimizer step");
    }
    if (i > 0 && micro_steps > asked) {
      return mistake(
          "tail_leak",
          fmt::format("step {} adds up {} micro-batches instead of {}: the last, partial window of an "
                      "epoch leaks into the next",
                      i + 1, micro_steps, asked),
          "step after the last micro-batch of an epoch, or drop it and zero the gradients");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Judgement> mistake_in_run(const ObservedRun& run, const std::vector<StepView>& steps) {
  if (auto wrong = wrong_split(run, steps)) return wrong;
  if (auto wrong = gradients_lost_or_kept(run, steps)) return wrong;
  return clipped_or_leaked(run, steps);
}

}  // namespace batchwright::tune
