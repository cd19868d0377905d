// What is shown to people, and work that belongs to an optimizer step.
#include <cmath>
#include <map>
#include <set>

#include "check/judge.h"
#include "check/kinds.h"

namespace batchwright::check {
namespace {

bool has_kind(const Judgement& out, std::string_view kind) {
  for (const Finding& finding : out.findings)
    if (finding.kind == kind) return true;
  return false;
}

struct Shown {
  double largest = 0, smallest = 1e9;  // factor of the reported value against the mean loss
  bool divided = true, multiplied = true;
  int times = 0;
};

// The trained losses, by where they are written: a report of anything else is none of our business.
std::set<std::pair<int, const Expr*>> trained_losses(const Trace& trace) {
  std::set<std::pair<int, const Expr*>> places;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::Backward)
      for (const Term& term : event.terms) {
        const Symbol& symbol = trace.symbols[static_cast<std::size_t>(term.symbol)];
        places.emplace(symbol.line, symbol.origin);
      }
  return places;
}

void judge_logs(const Trace& trace, double n, Judgement& out) {
  const auto trained = trained_losses(trace);
  std::map<int, Shown> by_line;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::Report) continue;
    std::map<int, double> by_stamp;  // parts of one micro-batch's loss have one weight
    bool divided = true, multiplied = true, ours = true;
    for (const Term& term : event.terms) {
      const Symbol& symbol = trace.symbols[static_cast<std::size_t>(term.symbol)];
      ours = ours && trained.count({symbol.line, symbol.origin}) && !symbol.count && !term.normalised &&
             !term.scaled;
      double& weight = by_stamp[symbol.stamp];
      weight = std::max(weight, term.window * std::fabs(term.averaged));
      divided = divided && term.window < 0.7;
      multiplied = multiplied && term.window > 1.5;
    }
    if (!ours || event.terms.empty()) continue;
    double sum = 0;
    for (const auto& [stamp, weight] : by_stamp) sum += weight;
    Shown& shown = by_line[event.line];
    shown.largest = std::max(shown.largest, sum);
    shown.smallest = std::min(shown.smallest, sum);
    shown.divided = shown.divided && divided;
    shown.multiplied = shown.multiplied && multiplied;
    ++shown.times;
  }
  for (const auto& [line, shown] : by_line) {
    if (shown.divided && shown.largest < 1.5 / n) {
      Finding finding = make_finding("log_factor", line);
      finding.consequence = fmt::format("the reported loss is 1/{:.0f} of the real one", n);
      finding.fix = "report the loss before it is divided, or multiply it back";
      if (!has_kind(out, "log_factor")) add_finding(out, std::move(finding));
    } else if (shown.multiplied && shown.smallest > 0.7 * n && shown.smallest < 1e8) {
      Finding finding = make_finding("log_factor", line);
      finding.consequence = fmt::format("the reported loss is {:.0f} times the real one", n);
      finding.fix = "report the loss as it is: it was never divided";
      add_finding(out, std::move(finding));
    }
  }
}

void judge_periodic(const Trace& trace, Judgement& out) {
  double steps = 0;
  std::set<int> micro_stamps, ema_stamps;
  int ema_line = 0;
  struct Seen {
    double counter;
    int stamp;
  };
  std::map<int, Seen> last_counter;  // by line, since the last step
  std::map<int, int> repeats;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::Step) {
      ++steps;
      last_counter.clear();
    }
    if (event.kind == EventKind::Backward) micro_stamps.insert(event.stamp);
    if (event.kind == EventKind::Ema) {
      ema_stamps.insert(event.stamp);
      ema_line = event.line;
    }
    if (event.kind == EventKind::Save && event.counter >= 0) {
      const auto known = last_counter.find(event.line);
      if (known != last_counter.end() && known->second.counter == event.counter &&
          known->second.stamp != event.stamp)
        ++repeats[event.line];
      last_counter[event.line] = {event.counter, event.stamp};
    }
  }
  const auto micro = static_cast<double>(micro_stamps.size());
  if (steps == 0 || micro / steps < 1.6) return;
  if (static_cast<double>(ema_stamps.size()) >= 0.8 * micro)
    add_finding(out, make_finding("ema_per_micro_step", ema_line));
  for (const auto& [line, times] : repeats)
    if (times >= 3) {
      Finding finding = make_finding("ema_per_micro_step", line);
      finding.consequence =
          "the counter keeps its value between two optimizer steps, so this runs with every micro-batch of "
          "the window";
      add_finding(out, std::move(finding));
    }
}

}  // namespace

void judge_reports(const Trace& trace, const Scan&, Judgement& out) {
  const double n = window_of(trace);
  // With the division that is too much the reported factor goes too.
  if (n >= 2 && !trace.trainer && !has_kind(out, "double_division")) judge_logs(trace, n, out);
  judge_periodic(trace, out);
}

}  // namespace batchwright::check
