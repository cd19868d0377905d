// From the trace to what each optimizer step saw.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/judge.h"
#include "check/kinds.h"

namespace batchwright::check {
namespace {

struct Share {
  std::map<int, double> by_stamp;  // micro-batch -> weight
  std::map<int, double> literal;
  bool normalised = true, uncertain = false, summed = false, rescaled = false;
  double world = 1;
};

}  // namespace

namespace {

// By the line of a loss: the optimizers that step right after its backward, before any other.
std::map<int, std::set<int>> direct_owners(const Trace& trace) {
  std::map<int, std::set<int>> owners;
  const Event* last = nullptr;
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::Backward) last = &event;
    if (event.kind != EventKind::Step || !last) continue;
    for (const Term& term : last->terms)
      owners[trace.symbols[static_cast<std::size_t>(term.symbol)].line].insert(event.target);
  }
  return owners;
}

}  // namespace

std::map<int, std::set<int>> owners_of(const Trace& trace) {
  const auto direct = direct_owners(trace);
  std::map<int, std::set<int>> owners;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind != EventKind::Backward) continue;
    std::set<int> next;
    for (std::size_t j = i + 1; j < trace.events.size() && j < i + 150; ++j) {
      if (trace.events[j].kind == EventKind::Step) next.insert(trace.events[j].target);
      if (trace.events[j].kind == EventKind::Backward && !next.empty()) break;
    }
    for (const Term& term : trace.events[i].terms) {
      const auto known = direct.find(trace.symbols[static_cast<std::size_t>(term.symbol)].line);
      const auto& steps = known == direct.end() ? next : known->second;
      owners[term.symbol].insert(steps.begin(), steps.end());
    }
  }
  return owners;
}

// Whether every loss that an optimizer steps on is there for all of them: an encoder and a decoder, a
// backbone and a head.
static bool shares_every_loss(const Trace& trace, int optimizer, const std::vector<int>& optimizers) {
  std::map<int, std::set<int>> by_line;
  for (const auto& [symbol, own] : owners_of(trace))
    by_line[trace.symbols[static_cast<std::size_t>(symbol)].line].insert(own.begin(), own.end());
  bool any = false;
  for (const auto& [line, own] : by_line) {
    if (!own.count(optimizer)) continue;
    any = true;
    if (own.size() < optimizers.size()) return false;
  }
  return any;
}

std::vector<int> stepping_optimizers(const Trace& trace) {
  std::vector<int> found;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::Step && std::find(found.begin(), found.end(), event.target) == found.end())
      found.push_back(event.target);
  return found;
}

std::vector<StepView> views_of(const Trace& trace, int optimizer) {
  const bool several = stepping_optimizers(trace).size() > 1;
  // Here by line: what one micro-batch's loss is for, the same line's next one is for too.
  std::map<int, std::set<int>> owners;
  if (several)
    for (const auto& [symbol, own] : owners_of(trace))
      owners[trace.symbols[static_cast<std::size_t>(symbol)].line].insert(own.begin(), own.end());
  std::vector<StepView> views;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const Event& event = trace.events[i];
    if (event.kind != EventKind::Step || event.target != optimizer) continue;
    // A symbol that was added twice counts twice; parts of one micro-batch's loss count once.
    std::map<int, Term> by_symbol;
    for (const Term& term : event.terms) {
      auto [at, fresh] = by_symbol.emplace(term.symbol, term);
      if (!fresh) at->second.window += term.window;
    }
    std::map<int, Share> by_line;
    StepView view;
    view.line = event.line;
    view.event = i;
    for (const auto& [id, term] : by_symbol) {
      const Symbol& symbol = trace.symbols[static_cast<std::size_t>(id)];
      if (several) {
        const auto owner = owners.find(symbol.line);
        if (owner != owners.end() && !owner->second.count(optimizer)) continue;
      }
      if (symbol.count) continue;
      view.symbols.push_back(id);
      Share& share = by_line[symbol.line];
      auto [at, fresh] = share.by_stamp.emplace(symbol.stamp, term.window);
      if (!fresh) at->second = std::max(at->second, term.window);
      share.literal.emplace(symbol.stamp, std::fabs(term.literal * term.averaged));
      share.normalised = share.normalised && term.normalised;
      share.uncertain = share.uncertain || term.uncertain;
      share.rescaled = share.rescaled || term.rescaled;
      share.summed = share.summed || (symbol.summed && !term.counted);
      share.world = term.world;
    }
    const Share* main = nullptr;
    int main_line = 0;
    for (const auto& [line, share] : by_line)
      if (!main || share.by_stamp.size() > main->by_stamp.size() ||
          (share.normalised && !main->normalised && share.by_stamp.size() == main->by_stamp.size())) {
        main = &share;
        main_line = line;
      }
    if (main) {
      view.normalised = main->normalised;
      view.uncertain = main->uncertain;
      view.rescaled = main->rescaled;
      view.summed = main->summed;
      view.world = main->world;
      double literal_sum = 0;
      for (const auto& [stamp, weight] : main->by_stamp) {
        view.micro_batches.push_back(stamp);
        view.weights.push_back(weight);
        view.sum += weight;
        literal_sum += weight * main->literal.at(stamp);
        view.equal = view.equal && std::fabs(weight - view.weights.front()) < 1e-9 &&
                     std::fabs(main->literal.at(stamp) - main->literal.begin()->second) < 1e-9;
      }
      view.literal = view.sum > 0 ? literal_sum / view.sum : 1;
      for (const auto& [line, share] : by_line) {
        if (line == main_line || share.normalised || share.by_stamp.size() != main->by_stamp.size()) continue;
        double sum = 0;
        for (const auto& [stamp, weight] : share.by_stamp) sum += weight;
        if (std::fabs(sum - view.sum) > std::fabs(view.other_sum - view.sum) || view.other_sum == 0) {
          view.other_sum = sum;
          view.other_line = line;
        }
      }
    }
    views.push_back(std::move(view));
  }
  return views;
}

double window_of(const Trace& trace) {
  if (trace.accumulation > 1) return trace.accumulation;
  return trace.loop_window > 1 ? trace.loop_window : 0;
}

void add_finding(Judgement& out, Finding finding) {
  for (const Finding& known : out.findings)
    if (known.kind == finding.kind && (known.line == finding.line || finding.severity == Severity::Note))
      return;
  out.findings.push_back(std::move(finding));
}

void add_once(Judgement& out, std::string_view kind, int line) {
  for (const Finding& known : out.findings)
    if (known.kind == kind) return;
  out.findings.push_back(make_finding(kind, line));
}

Judgement judge(const Trace& trace, const Scan& scan) {
  Judgement out;
  bool backward = false, step = false;
  for (const Event& event : trace.events) {
    backward = backward || event.kind == EventKind::Backward;
    step = step || event.kind == EventKind::Step;
  }
  out.trains = backward && step;
  if (!out.trains) return out;
  const auto optimizers = stepping_optimizers(trace);
  Judgement first;
  std::vector<Finding> certain;
  for (const int optimizer : optimizers) {
    Judgement one;
    judge_weights(trace, scan, optimizer, one);
    out.accumulates = out.accumulates || one.accumulates;
    // Where it is not certain which gradients belong to which of several optimizers, only what all of them
    // show counts.
    // Beside accumulate() a reference model may train without it.
    if (optimizers.size() > 1 && !trace.used_accumulate &&
        (trace.owned.count(optimizer) || shares_every_loss(trace, optimizer, optimizers)))
      certain.insert(certain.end(), one.findings.begin(), one.findings.end());
    if (optimizer == optimizers.front()) {
      first = one;
      continue;
    }
    std::erase_if(first.findings, [&](const Finding& finding) {
      return std::none_of(one.findings.begin(), one.findings.end(),
                          [&](const Finding& other) { return other.kind == finding.kind; });
    });
    if (one.missing.empty()) first.missing.clear();
  }
  for (const Finding& finding : first.findings) add_finding(out, finding);
  for (const Finding& finding : certain) add_finding(out, finding);
  if (out.missing.empty()) out.missing = first.missing;
  judge_order(trace, scan, out);
  judge_schedules(trace, scan, out);
  judge_reports(trace, scan, out);
  return out;
}

}  // namespace batchwright::check
