#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/config_rules.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

bool close(double a, double b) { return std::abs(a - b) <= std::max(1.0, 0.02 * std::abs(b)); }

void warmup_against_total(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  if (const Setting* ratio = run.arguments.find(Q::WarmupRatio);
      ratio != nullptr && ratio->number && *ratio->number >= 1) {
    const Setting* steps = run.arguments.find(Q::WarmupSteps);
    if (steps == nullptr || steps->number.value_or(0) <= 0) {
      Finding& f = found.add("warmup_gt_total", *ratio);
      f.what = fmt::format("{} is no fraction of the training", spell(*ratio, files));
      f.consequence =
          *ratio->number > 1
              ? "a ratio lies between 0 and 1: the start is refused, or the learning rate only rises"
              : "the learning rate rises to the last step";
      f.fix = *ratio->number > 1 ? "warmup_steps for a number of steps" : "a ratio such as 0.03";
    }
  }
  const Setting* warmup = run.arguments.find(Q::WarmupSteps);
  if (warmup != nullptr && warmup->number && *warmup->number > 0) {
    const Known total = run.total_steps(true);
    const Setting* length = run.arguments.find(Q::ScheduleSteps);
    const bool by_length =
        !total && total.from == nullptr && length != nullptr && length->number && *length->number > 0;
    const std::optional<double> steps = by_length ? length->number : total.value;
    if (steps && *warmup->number >= *steps) {
      Finding& f = found.add("warmup_gt_total", *warmup);
      f.what = fmt::format("{} against {:g} optimizer steps in all{}", spell(*warmup, files), *steps,
                           total.from != nullptr
                               ? fmt::format(" ({})", place(total.from->file, total.from->line, files))
                           : run.processes() || by_length ? ""
                                                          : " at most");
      f.consequence =
          "the learning rate rises in a straight line to the end and reaches its value never or with the "
          "last step";
      f.fix = fmt::format("warm-up of {:g} steps (3 to 10 % of the total)",
                          std::max(1.0, std::round(0.05 * *steps)));
      found.correct(*warmup, spell(std::max(1.0, std::round(0.05 * *steps))));
    }
  }
  if (!run.engine) return;
  const Setting* engine_warmup = run.engine->find(Q::WarmupSteps);
  const Setting* engine_total = run.engine->find(Q::ScheduleSteps);
  const Known total = engine_total != nullptr && engine_total->number
                          ? Known{engine_total->number, engine_total}
                          : run.total_steps(true);
  if (engine_warmup == nullptr || !engine_warmup->number || !total || *engine_warmup->number < *total) return;
  if (*engine_warmup->number <= 0) return;
  Finding& f = found.add("warmup_gt_total", *engine_warmup);
  f.what = fmt::format("{} against {:g} steps in all", spell(*engine_warmup, files), *total);
  f.consequence = "the learning rate rises to the end and never reaches its value";
  f.fix = "warm-up in optimizer steps, as a share of the total";
}

// A step count against the data: does it count examples, micro-batches, or forget the processes?
void count_against_data(const Run& run, const Setting& steps, std::string_view what_it_is,
                        const std::vector<std::string>& files, FindingList& found) {
  const Known n = run.examples(), m = run.micro_batch(), a = run.accumulation();
  Known d = run.processes();
  if (!steps.number || *steps.number <= 0 || !n || *n < 2 || !m || !a || *m < 1 || *a < 1) return;
  const bool world_known = static_cast<bool>(d);
  if (!world_known) d.value = 1;
  const double batch = *m * *a * *d, count = *steps.number;
  const Known e = run.epochs();
  const bool epochs_written = e && e.from != nullptr;
  const double passes = count * batch / *n;  // epochs that the count makes
  std::vector<double> wanted;
  if (epochs_written && *e > 0)
    wanted.push_back(*e);
  else
    wanted = {1, 2, 3, 4, 5, 10};
  for (const double epochs : wanted) {
    const double right = std::ceil(*n / batch) * epochs;
    if (close(count, right)) return;
  }
  for (const double epochs : wanted) {
    const double right = std::ceil(*n / batch) * epochs;
    struct Mistaken {
      double value;
      std::string_view kind, unit;
    };
    const double per_process = std::ceil(*n / (*m * *a)) * epochs, micro = std::ceil(*n / (*m * *d)) * epochs;
    const Mistaken candidates[] = {
        {*n * epochs, "max_steps_unit", "examples"},
        {*d > 1 ? per_process : -1, "steps_world_size", "the steps of one process"},
        {*a > 1 ? micro : -1, "max_steps_unit", "micro-batches"},
        {*a > 1 && *d > 1 ? std::ceil(*n / *m) * epochs : -1, "max_steps_unit",
         "micro-batches of one process"}};
    for (const Mistaken& candidate : candidates) {
      if (candidate.value <= 0 || !close(count, candidate.value) || count < 1.5 * right) continue;
      // Without the number of epochs a round count of steps can match by chance: only the plain ones are
      // certain.
      if (!epochs_written && epochs != 1) continue;
      Finding& f = found.add(candidate.kind, steps);
      f.what = fmt::format("{} counts {}: {:g} examples at {:g} a step are {:g} optimizer steps{}",
                           spell(steps, files), candidate.unit, *n, batch, right,
                           epochs == 1 ? "" : fmt::format(" in {:g} epochs", epochs));
      f.consequence = fmt::format("{} {:.3g} epochs instead of {:g}", what_it_is, passes, epochs);
      f.fix = fmt::format("{:g}{}", right,
                          world_known ? "" : ", for one process; divide by the number of processes");
      if (world_known) found.correct(steps, spell(right));
      return;
    }
  }
  if (epochs_written && count >= 3 * std::ceil(*n / batch) * *e && world_known) {
    Finding& f = found.add("max_steps_unit", steps);
    f.what = fmt::format("{} is {:.3g} times the {:g} optimizer steps of {:g} epochs", spell(steps, files),
                         count / (std::ceil(*n / batch) * *e), std::ceil(*n / batch) * *e, *e);
    f.consequence = fmt::format("{} {:.3g} epochs instead of {:g}", what_it_is, passes, *e);
    f.fix = fmt::format("{:g}", std::ceil(*n / batch) * *e);
  }
}

// max_steps wins over epochs (transformers.Trainer.set_initial_training_values): harmless where the two
// agree.
void epochs_against_max_steps(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* steps = run.arguments.find(Q::MaxSteps);
  const Setting* epochs = run.arguments.find(Q::Epochs);
  const Known n = run.examples(), batch = run.effective_batch();
  if (!run.trainer() || !steps || !epochs || !steps->number || !epochs->number || !n || !batch) return;
  if (*steps->number <= 0 || *epochs->number <= 0 || *batch < 1) return;
  const double asked = std::ceil(*n / *batch) * *epochs->number;
  if (*steps->number > 0.67 * asked) return;  // more steps than asked for is count_against_data's to explain
  Finding& f = found.add("silent_override", *epochs);
  f.what = fmt::format("{} has no effect beside {}", spell(*epochs, files), spell(*steps, files));
  f.consequence = fmt::format("max_steps win: training ends after {:.2g} epochs instead of {:g}",
                              *steps->number * *batch / *n, *epochs->number);
  f.fix = "keep one of the two";
}

void schedule_against_steps(const Run& run, const Setting& length, const std::vector<std::string>& files,
                            FindingList& found) {
  const Known total = run.total_steps(false), d = run.processes(), a = run.accumulation();
  if (!total || !length.number || *length.number <= 0 || close(*length.number, *total)) return;
  const bool world = d && *d > 1 && close(*length.number, *total * *d);
  const bool micro = a && *a > 1 && close(*length.number, *total * *a);
  const bool both = d && a && *d > 1 && *a > 1 && close(*length.number, *total * *d * *a);
  if (!world && !micro && !both) return;
  Finding& f = found.add(world ? "steps_world_size" : "max_steps_unit", length);
  f.what = fmt::format("{} where the run makes {:g} optimizer steps", spell(length, files), *total);
  f.consequence = fmt::format("the learning rate covers {:.3g} % of its schedule and ends high",
                              100 * *total / *length.number);
  f.fix = fmt::format("{:g}", *total);
  found.correct(length, spell(*total));
}

}  // namespace

void check_step_counts(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  warmup_against_total(run, files, found);
  epochs_against_max_steps(run, files, found);
  if (const Setting* steps = run.arguments.find(Q::MaxSteps))
    count_against_data(run, *steps, "training makes", files, found);
  const Setting* length = run.engine ? run.engine->find(Q::ScheduleSteps) : nullptr;
  if (length == nullptr) length = run.arguments.find(Q::ScheduleSteps);
  if (length == nullptr) return;
  const Known total = run.total_steps(false);
  if (total) schedule_against_steps(run, *length, files, found);
  if (!total || run.max_steps().from == nullptr)
    count_against_data(run, *length, "the schedule would end after", files, found);
}

}  // namespace batchwright::check
