#include "tune/run_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tune/step_comparison.h"

namespace batchwright::tune {
namespace {

using run::ObservedRun;

// Zeros are equal whatever mistake scales them.
Judgement no_gradient() {
  return {Equivalent::CannotTell, "", "the gradient of the first step is zero, so nothing can be compared",
          "start from weights and data that give a loss with a gradient", false};
}

class Comparison {
 public:
  Comparison(const ObservedRun& run, const ObservedRun& reference, const ObservedRun* repeat)
      : run_(run),
        reference_(reference),
        repeat_(repeat),
        steps_(step_views(run)),
        wanted_(step_views(reference)),
        common_(std::min(steps_.size(), wanted_.size())),
        more_(static_cast<double>(run.split.accumulation_steps) /
              static_cast<double>(reference.split.accumulation_steps)) {}

  Judgement judge() const {
    if (common_ == 0) return {Equivalent::CannotTell, "", "no step of it was seen", "", false};
    if (auto wrong = mistake_in_run(run_, steps_)) return *wrong;
    if (!steps_[0].loss || !wanted_[0].loss || !steps_[0].gradient_norm || !wanted_[0].gradient_norm)
      return {Equivalent::CannotTell, "", "the first step's loss or gradient is not a finite number", "",
              false};
    if (*wanted_[0].gradient_norm == 0 && *steps_[0].gradient_norm == 0) return no_gradient();
    return same_at(0) ? judge_later_steps() : judge_first_step();
  }

 private:
  bool same_data(std::size_t i) const { return steps_[i].data == wanted_[i].data; }
  double loss_factor(std::size_t i) const { return *steps_[i].loss / *wanted_[i].loss; }
  double gradient_factor(std::size_t i) const { return *steps_[i].gradient_norm / *wanted_[i].gradient_norm; }
  bool same_at(std::size_t i) const {
    return same_step(steps_[i], wanted_[i],
                     i == 0 ? first_step_tolerance(wanted_[0]) : later_step_tolerance());
  }
  std::string name() const { return run::to_string(reference_.split); }

  Judgement judge_first_step() const {
    const double tolerance = same_data(0) ? 0.02 : 0.3;
    const auto both_near = [&](double factor) {
      return std::abs(loss_factor(0) / factor - 1) < tolerance &&
             std::abs(gradient_factor(0) / factor - 1) < tolerance;
    };
    if (more_ != 1 && both_near(more_)) return not_divided();
    if (more_ != 1 && both_near(1 / more_)) {
      return mistake(
          "double_division",
          fmt::format("loss and gradient norm are 1/{:.3g} of those of {}: the loss is divided by the "
                      "accumulation steps twice",
                      1 / gradient_factor(0), name()),
          "divide once: by hand, or by the framework");
    }
    if (!same_data(0)) return other_data();
    if (wanted_[0].leader->batch_statistics) {
      return mistake("not_equivalent_by_nature",
                     "the model has BatchNorm in training mode, whose statistics are those of a micro-batch",
                     "freeze BatchNorm, or replace it by a norm of single examples");
    }
    if (const auto expected = steps_[0].label_weighted_loss();
        expected && wanted_[0].micro_steps() == 1 &&
        std::abs(*expected / *wanted_[0].loss - 1) < first_step_tolerance(wanted_[0]).loss) {
      return mistake(
          "token_mean_of_means",
          fmt::format("the step averages the means of its micro-batches, whose labels number from {} to "
                      "{}: weighted by labels they give exactly the loss of {}",
                      steps_[0].least_labels(), steps_[0].most_labels(), name()),
          "sum the losses and divide by the number of labels of the whole step");
    }
    return without_cause();
  }

  Judgement not_divided() const {
    const std::string& trainer = wanted_[0].leader->trainer;
    const bool transformers = trainer.starts_with("transformers ");
    const bool overrides = trainer.find("overrides") != std::string::npos;
    std::string why = fmt::format(
        "loss is {:.3g} and gradient norm {:.3g} times that of {}: the loss of a micro-batch is not divided "
        "by the {} "
        "accumulation steps{}{}",
        loss_factor(0), gradient_factor(0), name(), run_.split.accumulation_steps,
        trainer.empty() ? "" : fmt::format(" ({})", trainer),
        same_data(0) ? "" : "; the examples differ, so the factor is rough");
    return mistake(overrides ? "custom_loss_bypass" : "no_division", std::move(why),
                   transformers
                       ? "set trainer.model_accepts_loss_kwargs = False, or divide the summed loss by "
                         "num_items_in_batch"
                       : "divide the loss by the accumulation steps before backward");
  }

  Judgement other_data() const {
    std::string why = fmt::format("its first step saw other examples than that of {}", name());
    if (repeat_ == nullptr) return {Equivalent::CannotTell, "", why, "", true};
    const auto again = step_views(*repeat_);
    if (again.empty() || again[0].data != wanted_[0].data) {
      return {Equivalent::CannotTell, "",
              fmt::format("{}, and so did a second run of {}: the script draws its examples "
                          "at random without a seed",
                          why, name()),
              "seed the script (torch.manual_seed, or its --seed)", false};
    }
    return {Equivalent::CannotTell, "", why + ": the order of its data depends on the micro-batch size",
            "draw the order of the examples, not of the batches, from the seed", false};
  }

  Judgement without_cause() const {
    std::string why =
        fmt::format("loss is {:.5g} and gradient norm {:.5g} times that of {} on the same examples",
                    loss_factor(0), gradient_factor(0), name());
    if (steps_[0].leader->dropout)
      return {Equivalent::CannotTell, "", why + ", with dropout on", "leave --keep-dropout out", false};
    if (repeat_ == nullptr) return {Equivalent::Different, "", why, "", true};
    const auto again = step_views(*repeat_);
    if (again.empty() || !same_step(again[0], wanted_[0], first_step_tolerance(wanted_[0]))) {
      return {Equivalent::CannotTell, "",
              fmt::format("{}, but a second run of {} differs from the first too: something in it is random",
                          why, name()),
              "seed the script before it makes the model (torch.manual_seed, transformers.set_seed), and "
              "turn its own random parts off",
              false};
    }
    return {Equivalent::Different, "", why + ", by none of the mistakes known here", "", false};
  }

  Judgement judge_later_steps() const {
    if (auto wrong = schedule()) return *wrong;
    for (std::size_t i = 1; i < common_; ++i) {
      if (auto wrong = tail(i)) return *wrong;
      if (!same_data(i)) {
        return {Equivalent::Same, "",
                fmt::format("the same in the first {}; then the splits see other examples",
                            i == 1 ? "step" : fmt::format("{} steps", i)),
                "", false};
      }
      if (!same_at(i)) {
        return {
            Equivalent::Different, "",
            fmt::format(
                "the first step is the same, and step {} is not: loss {:.5g} and gradient norm {:.5g} times "
                "that of {}",
                i + 1, loss_factor(i), gradient_factor(i), name()),
            "", false};
      }
    }
    return {Equivalent::Same, "", fmt::format("the same in {} steps", common_), "", false};
  }

  std::optional<Judgement> schedule() const {
    std::int64_t calls = 0, wanted_calls = 0;
    std::size_t other_rate = 0;
    for (std::size_t i = 1; i < common_; ++i) {
      calls += steps_[i].leader->scheduler_steps;
      wanted_calls += wanted_[i].leader->scheduler_steps;
      const double rate = steps_[i].learning_rate, wanted = wanted_[i].learning_rate;
      if (other_rate == 0 && std::abs(rate - wanted) > 1e-6 * std::max(rate, wanted)) other_rate = i;
    }
    const bool more_calls = wanted_calls > 0 && calls > wanted_calls;
    if (!more_calls && other_rate == 0) return std::nullopt;
    const std::string rates =
        other_rate == 0
            ? ""
            : fmt::format("; the learning rate of step {} is {:.4g} instead of {:.4g}", other_rate + 1,
                          steps_[other_rate].learning_rate, wanted_[other_rate].learning_rate);
    if (more_calls) {
      return mistake("sched_per_micro_step",
                     fmt::format("the schedule takes {} steps in {} optimizer steps, and {} at {}{}", calls,
                                 common_ - 1, wanted_calls, name(), rates),
                     "step the schedule once after each optimizer step");
    }
    return mistake("sched_units", fmt::format("the schedule's length depends on the split{}", rates),
                   "give lengths in optimizer steps: ceil(batches / accumulation steps)");
  }

  std::optional<Judgement> tail(std::size_t i) const {
    const StepView &step = steps_[i], &wanted = wanted_[i];
    const std::int64_t full = run_.split.effective_batch();
    if (wanted.examples < full && step.examples != wanted.examples) {
      return mistake(
          "tail_dropped",
          fmt::format("step {} trains on the last {} examples of the epoch at {}, and drops them here", i + 1,
                      wanted.examples, name()),
          "step after the last micro-batch of an epoch, or let the loader drop the last batch at every "
          "split");
    }
    if (step.examples >= full || !same_data(i) || !step.loss || !wanted.loss || same_at(i))
      return std::nullopt;
    const double share =
        static_cast<double>(step.micro_steps()) / static_cast<double>(run_.split.accumulation_steps);
    if (std::abs(loss_factor(i) / share - 1) > 0.05) return std::nullopt;
    return mistake(
        "tail_full_divisor",
        fmt::format(
            "the last, partial window (step {}, {} micro-batches) is divided by the full {}: its loss "
            "is {:.3g} times that of {}",
            i + 1, step.micro_steps(), run_.split.accumulation_steps, loss_factor(i), name()),
        "divide by the number of micro-batches that the window has");
  }

  const ObservedRun& run_;
  const ObservedRun& reference_;
  const ObservedRun* repeat_;
  std::vector<StepView> steps_, wanted_;
  std::size_t common_;
  double more_;  // accumulation steps, as a multiple of the reference's
};

}  // namespace

Judgement judge_reference(const ObservedRun& run) {
  const auto steps = step_views(run);
  if (steps.empty()) return {Equivalent::CannotTell, "", "no step of it was seen", "", false};
  if (auto wrong = mistake_in_run(run, steps)) return *wrong;
  if (steps[0].gradient_norm && *steps[0].gradient_norm == 0) return no_gradient();
  return {Equivalent::Same, "", "the others are compared with it", "", false};
}

Judgement judge_against(const ObservedRun& run, const ObservedRun& reference, const ObservedRun* repeat) {
  return Comparison(run, reference, repeat).judge();
}

}  // namespace batchwright::tune
