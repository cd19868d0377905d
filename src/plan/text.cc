#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "base/units.h"
#include "plan/document.h"

namespace batchwright::plan {
namespace {

std::string bytes_interval(const Range& range) {
  return fmt::format("{} [{}, {}]", format_bytes(std::llround(range.mid)),
                     format_bytes(std::llround(range.low)), format_bytes(std::llround(range.high)));
}

std::string millions(double count) {
  if (count >= 1e9) return fmt::format("{:.2f} B", count / 1e9);
  return count >= 1e6 ? fmt::format("{:.1f} M", count / 1e6) : fmt::format("{:.0f}", count);
}

std::string heading(const Plan& plan) {
  const Request& r = plan.request;
  std::string text =
      fmt::format("{}: {} parameters, {} trained ({}), on {} x {} with {} usable\n", r.model,
                  millions(plan.parameters), millions(plan.trained_parameters), name_of(r.method), r.devices,
                  plan.device.name, format_bytes(plan.limit_bytes));
  text += fmt::format(
      "effective batch {}, {} tokens an example{}; weights {}, products {}, checkpointing {}, {}\n",
      r.effective_batch, r.longest(), r.lengths.counts.size() > 1 ? " at most" : "", name_of(r.weights),
      name_of(r.compute), name_of(r.checkpointing), name_of(r.framework));
  return text;
}

Table splits_table(const Plan& plan) {
  Table table({{"split", Align::Left},
               {"batch", Align::Right},
               {"fits", Align::Left},
               {fmt::format("needs, of {}", format_bytes(plan.limit_bytes)), Align::Left},
               {fmt::format("peak ({})", name_of(plan.request.counter)), Align::Right},
               {"decided by", Align::Left},
               {"step time", Align::Left},
               {"to best", Align::Right},
               {"", Align::Left}});
  double best = INFINITY;
  for (const SplitPlan& split : plan.splits) {
    if (split.fits != Fits::No) best = std::min(best, split.step_seconds.mid);
  }
  for (std::size_t i = 0; i < plan.splits.size(); ++i) {
    const SplitPlan& split = plan.splits[i];
    const Range& time = split.step_seconds;
    table.add_row(
        {to_string(split.split),
         split.batch.exact() ? fmt::format("{}", split.batch.real)
                             : fmt::format("{} ({:+.3g} %)", split.batch.real, 100 * split.batch.excess),
         std::string(name_of(split.fits)), bytes_interval(split.needed_bytes),
         format_bytes(std::llround(split.peak_bytes.mid)), std::string(name_of(split.memory.moment)),
         format_seconds_interval(time.mid, time.low, time.high),
         std::isfinite(best) ? fmt::format("{:.2f}x", time.mid / best) : "",
         plan.recommended == i ? "<- recommended" : ""});
  }
  return table;
}

std::string changes_text(const Plan& plan) {
  const bool enough = plan.if_nothing_fits.front().fits != Fits::No;
  std::string text = fmt::format("{}, at {}:\n", enough ? "What would fit" : "Not enough either, but nearest",
                                 to_string(plan.splits.back().split));
  for (const Change& change : plan.if_nothing_fits) {
    text += fmt::format("  {}: needs {}, {} a step{}\n", change.change,
                        format_bytes(std::llround(change.needed_bytes)), format_seconds(change.step_seconds),
                        change.fits == Fits::Unsure ? " (may fit: measure with `batchwright tune`)" : "");
  }
  return text;
}

struct Bar {
  const char* name;
  double value;
};

std::string bars(const std::vector<Bar>& rows, double total, std::string (*format)(double)) {
  std::string text;
  for (const Bar& row : rows) {
    if (row.value <= 0) continue;
    const double share = row.value / total;
    text += fmt::format("  {:16} {:>9}  {:>5.1f} %  {}\n", row.name, format(row.value), 100 * share,
                        std::string(static_cast<std::size_t>(std::lround(40 * share)), '#'));
  }
  return text;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text = heading(plan) + "\n" + splits_table(plan).to_string() + "\n";
  text += plan.reason + "\n";
  if (plan.learning_rate) {
    text += fmt::format(
        "learning rate: {:.3g} by the linear rule (SGD's theory), {:.3g} by the square-root rule (Adam's)\n",
        plan.learning_rate->linear, plan.learning_rate->sqrt);
  }
  if (plan.warmup) {
    text += fmt::format("warm-up: {} optimizer steps, which are {} micro-steps at this split\n",
                        plan.warmup->optimizer_steps, plan.warmup->micro_steps);
  }
  if (!plan.if_nothing_fits.empty()) text += changes_text(plan);
  for (const std::string& warning : plan.warnings) text += "warning: " + warning + "\n";
  if (!plan.request.assumed.empty()) {
    std::string assumed;
    for (const auto& [key, value] : plan.request.assumed)
      assumed += fmt::format("{}{} {}", assumed.empty() ? "" : ", ", key, value);
    text += "assumed: " + assumed + "\n";
  }
  return text;
}

std::string explain_text(const Plan& plan, std::size_t index) {
  const SplitPlan& split = plan.splits.at(index);
  const MemoryParts& m = split.memory.parts;
  const TimeParts& t = split.time;
  std::string text = fmt::format("{}: peak {} at the {}\n", to_string(split.split),
                                 bytes_interval(split.peak_bytes), name_of(split.memory.moment));
  text += bars({{"weights", m.weights},
                {"adapters", m.adapters},
                {"gradients", m.gradients},
                {"optimizer state", m.optimizer_state},
                {"activations", m.activations},
                {"loss", m.loss},
                {"temporary", m.temporary},
                {"allocator", m.allocator},
                {"context", m.context}},
               m.total(), [](double v) { return format_bytes(std::llround(v)); });
  text += fmt::format("step {}\n", format_seconds_interval(split.step_seconds.mid, split.step_seconds.low,
                                                           split.step_seconds.high));
  text += bars({{"products", t.products},
                {"attention", t.attention},
                {"elementwise", t.elementwise},
                {"loss", t.loss},
                {"launches", t.launch},
                {"unpacking", t.unpacking},
                {"communication", t.communication},
                {"optimizer", t.optimizer},
                {"fixed", t.fixed}},
               t.total(), [](double v) { return format_seconds(v); });
  const double other = static_cast<double>(plan.limit_bytes) / split.memory.needed;
  text += fmt::format("It needs {}; the device has {} ({:.2f} times that).\n",
                      format_bytes(std::llround(split.memory.needed)), format_bytes(plan.limit_bytes), other);
  return text;
}

}  // namespace batchwright::plan
