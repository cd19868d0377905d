// Schedules: the unit that their length counts against the number of times that they are stepped.
#include <cmath>

#include "check/judge.h"
#include "check/kinds.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

// Whether a ratio is the factor n or its inverse, rather than 1: closer to it on a logarithmic scale, and not
// explained by a partial window.
bool is_factor(double ratio, double n) {
  if (n < 2 || ratio <= 0) return false;
  const double off = std::fabs(std::log(ratio / n));
  return off < 0.35 && off < std::fabs(std::log(ratio));
}

}  // namespace

void judge_schedules(const Trace& trace, const Scan& scan, Judgement& out) {
  double steps = 0, micro = 0;
  bool through_scaler = false;
  std::vector<int> targets = stepping_optimizers(trace);
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::Step && !targets.empty() && event.target == targets.front()) ++steps;
    if (event.kind == EventKind::Step) through_scaler = through_scaler || event.through_scaler;
  }
  if (steps == 0) return;
  std::set<int> stamps;
  for (const StepView& view : views_of(trace, targets.front()))
    stamps.insert(view.micro_batches.begin(), view.micro_batches.end());
  micro = static_cast<double>(stamps.size());
  const double n = window_of(trace) >= 2 ? window_of(trace) : std::round(micro / steps);
  const bool accumulates = micro / steps >= 1.6;
  for (std::size_t id = 0; id < trace.schedules.size(); ++id) {
    const ScheduleFact& fact = trace.schedules[id];
    double calls = 0, ticks = 0;
    int line = 0;
    for (const Event& event : trace.events)
      if (event.kind == EventKind::SchedulerStep && event.target == static_cast<int>(id)) {
        ++calls;
        ticks += event.counter;
        line = event.line;
      }
    if (calls == 0) continue;
    if (through_scaler && calls >= steps * 0.8 && !scan.mentions("get_scale") &&
        !scan.mentions("step_was_skipped") && !scan.mentions("found_inf"))
      add_finding(out, make_finding("sched_vs_skipped_updates", line));
    if (calls < steps * 0.5) continue;  // once an epoch, or once an evaluation
    const double length = fact.length > 0 ? fact.length / trace.epoch_scale : -1;
    if (fact.restarts) {
      // Its length is a period: only the unit tells. Data loops that hold what an epoch has are over
      // micro-batches.
      const bool over_loader = micro <= std::max(1, trace.loop_ends) * (4 * n + 2.5);
      const bool updates = fact.taint & kAccumulation, loader = fact.taint & kLength;
      if (accumulates && over_loader && loader && !updates && !fact.fractional && calls < steps * 1.3) {
        Finding finding = make_finding("sched_units", fact.line);
        finding.consequence = fmt::format(
            "its period counts micro-batches and it is stepped once in {:.0f} of them: it is {:.0f} times "
            "too "
            "long",
            n, n);
        out.findings.push_back(std::move(finding));
      } else if (accumulates && loader && updates && !fact.fractional && calls >= micro * 0.9) {
        out.findings.push_back(make_finding("sched_per_micro_step", line));
      }
      continue;
    }
    if (length > 0) {
      const double ratio = ticks / length;
      if (fact.prepared && is_factor(ratio, trace.world) && !scan.mentions("eepspeed") &&
          !scan.mentions("eepSpeed")) {
        Finding finding = make_finding("sched_world_size", fact.line);
        out.findings.push_back(std::move(finding));
      } else if (accumulates && is_factor(ratio, n)) {
        Finding finding = make_finding("sched_per_micro_step", line);
        finding.consequence =
            fmt::format("stepped {:.0f} times for a length of {:.0f}: it ends after 1/{:.0f} of the training",
                        ticks, length, n);
        out.findings.push_back(std::move(finding));
      } else if (accumulates && (is_factor(1 / ratio, n) || (fact.prepared && n > trace.world &&
                                                             is_factor(1 / ratio, n / trace.world)))) {
        Finding finding = make_finding("sched_units", fact.line);
        finding.consequence = fmt::format(
            "with N = {:.0f} it is stepped {:.0f} times for a length of {:.0f}: only 1/{:.0f} of it is used",
            n, ticks, length, n);
        out.findings.push_back(std::move(finding));
      }
      continue;
    }
    // Its length is not here. Steps with every micro-batch are wrong for any schedule that counts updates.
    if (accumulates && !fact.fractional && is_factor(calls / steps, micro / steps) && calls >= micro * 0.9) {
      if (scan.bounds_micro_batches(last_part(fact.length_text))) continue;  // it counts them too
      if (fact.line == 0 && scan.is_parameter(fact.name)) {
        if (out.missing.empty())
          out.missing = fmt::format(
              "whether the length of {}, which is made elsewhere, counts micro-batches: line {} steps it "
              "with "
              "every one",
              fact.name, line);
        continue;
      }
      Finding finding = make_finding("sched_per_micro_step", line);
      out.findings.push_back(std::move(finding));
    }
  }
}

}  // namespace batchwright::check
