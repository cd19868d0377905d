// The verdict on gradients: does every optimizer step see each micro-batch once, with equal weights that sum
// to 1?
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/judge.h"
#include "check/kinds.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

constexpr double kTolerance = 0.02;
bool near(double a, double b) { return std::fabs(a - b) <= kTolerance * std::max(1.0, std::fabs(b)); }

std::string show(double number) {
  std::string text = fmt::format("{:.3g}", number);
  return text;
}

Finding weight_finding(std::string_view kind, int line, const std::vector<StepView>& views,
                       std::size_t from = 0) {
  Finding finding = make_finding(kind, line);
  std::map<std::string, std::vector<double>> weights;
  for (std::size_t i = from; i < views.size() && weights.size() < 4; ++i) {
    auto shown = views[i].weights;
    if (shown.size() > 32) shown.resize(32);
    weights[fmt::format("step {}", i + 1)] = std::move(shown);
  }
  finding.effective_weights = std::move(weights);
  return finding;
}

bool share_symbol(const StepView& a, const StepView& b) {
  for (const int symbol : a.symbols)
    if (std::find(b.symbols.begin(), b.symbols.end(), symbol) != b.symbols.end()) return true;
  return false;
}

// The size that most steps have: the window.
std::size_t usual_size(const std::vector<StepView>& views) {
  std::map<std::size_t, int> sizes;
  for (const auto& view : views) ++sizes[view.weights.size()];
  std::size_t best = 0;
  int most = 0;
  for (const auto& [size, times] : sizes)
    if (times > most || (times == most && size > best)) {
      best = size;
      most = times;
    }
  return best;
}

// Losses of this optimizer's kind that zero_grad threw away before any step saw them.
int dropped_in_window(const Trace& trace, const std::vector<StepView>& views, int optimizer, int& line) {
  std::set<int> stepped, lines;
  for (const auto& view : views)
    for (const int symbol : view.symbols) {
      stepped.insert(symbol);
      lines.insert(trace.symbols[static_cast<std::size_t>(symbol)].line);
    }
  const auto owners = owners_of(trace);
  const bool several = stepping_optimizers(trace).size() > 1;
  int dropped = 0;
  bool loop_ended = false;
  std::set<int> updated;  // iterations that stepped: what they compute after it is a measurement
  for (const Event& event : trace.events) {
    if (event.kind == EventKind::LoopEnd) loop_ended = true;
    if (event.kind == EventKind::Backward) loop_ended = false;
    if (event.kind == EventKind::Step) updated.insert(event.stamp);
    if (event.kind != EventKind::Zero || (event.target != optimizer && event.target >= 0) || loop_ended)
      continue;
    for (const Term& term : event.terms) {
      const auto owner = owners.find(term.symbol);
      if (several && (owner == owners.end() || !owner->second.count(optimizer))) continue;
      const Symbol& symbol = trace.symbols[static_cast<std::size_t>(term.symbol)];
      if (!stepped.count(term.symbol) && lines.count(symbol.line) && !updated.count(symbol.stamp)) {
        ++dropped;
        line = event.line;
        break;
      }
    }
  }
  return dropped;
}

int division_line(const Trace& trace, const StepView& view) {
  for (const Event& event : trace.events)
    if (event.kind == EventKind::Divide && event.after_backward)
      for (const Term& term : event.terms)
        if (std::find(view.symbols.begin(), view.symbols.end(), term.symbol) != view.symbols.end())
          return event.line;
  return 0;
}

int loss_line(const Trace& trace, const StepView& view) {
  int line = view.line;
  for (const Event& event : trace.events)
    if (event.kind == EventKind::Backward)
      for (const Term& term : event.terms)
        if (!view.symbols.empty() && term.symbol == view.symbols.front()) line = event.line;
  return line;
}

// Whether all that a step sees went backward at once.
bool one_backward(const Trace& trace, const StepView& view) {
  const std::set<int> wanted(view.symbols.begin(), view.symbols.end());
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::Backward) continue;
    std::set<int> held;
    for (const Term& term : event.terms)
      if (wanted.count(term.symbol)) held.insert(term.symbol);
    if (!held.empty()) return held.size() == wanted.size() && wanted.size() > 1;
  }
  return false;
}

bool reuses(const Trace& trace, const std::vector<StepView>& views, Judgement& out) {
  std::size_t reused = 0;
  for (std::size_t i = 0; i + 1 < views.size(); ++i) reused += share_symbol(views[i], views[i + 1]) ? 1 : 0;
  if (reused == 0 || views.size() < 2) return false;
  // A function without a loop is called by one that may zero.
  if (trace.endless && reused + 1 >= views.size() && !trace.events[views.front().event].explicit_gradient)
    return true;
  if (trace.opaque_zero) {
    out.missing = "whether a call that is not in this file zeroes the gradients";
    return true;
  }
  // Zeroed once before a loop of micro-batches whose loss is divided for one step: running sums of one
  // window.
  bool zeroed = false;
  for (const Event& event : trace.events)
    zeroed = zeroed || (event.kind == EventKind::Zero && event.target >= 0);
  const std::size_t growth =
      views[1].weights.size() - std::min(views[0].weights.size(), views[1].weights.size());
  const bool divided = views[0].sum < 0.9 || views[0].normalised || trace.micro_loop_named;
  const bool held = trace.events[views.front().event].explicit_gradient;  // in variables that start at zero
  const bool one_window = (zeroed || held) && trace.loop_ends == 1 && views.size() < 10;
  // Cleared more often than once an epoch: with every window.
  const bool cleared = views.size() - reused > static_cast<std::size_t>(std::max(2, trace.loop_ends));
  if (growth <= 1 && (cleared || (divided && (reused + 1 < views.size() || one_window)))) {
    // Cleared now and then: running sums inside each window.
    Finding finding = weight_finding("apply_inside_loop", views.front().line, views);
    out.findings.push_back(std::move(finding));
  } else {
    Finding finding = weight_finding("missing_zero_grad", views.front().line, views);
    finding.consequence = fmt::format(
        "step 2 still holds the gradient of step 1, step {} those of all steps before", views.size());
    out.findings.push_back(std::move(finding));
  }
  return true;
}

// Windows whose first differs from the rest in every epoch.
bool off_by_one(const std::vector<StepView>& views, double n, std::size_t usual, Judgement& out) {
  if (views.size() < 3 || usual < 2) return false;
  const std::size_t first = views[0].weights.size();
  const bool first_odd =
      first != usual && views[1].weights.size() == usual && views[2].weights.size() == usual;
  const bool all_odd = n >= 2 && static_cast<double>(usual) == n + 1 && near(views[1].sum, (n + 1) / n);
  if (!first_odd && !all_odd) return false;
  if (views[0].normalised && first > 0 && !first_odd) return false;
  Finding finding = weight_finding("off_by_one_boundary", views[0].line, views);
  finding.consequence =
      all_odd && !first_odd
          ? fmt::format("every step sees {} micro-batches instead of {:.0f}, with weights that sum to {}",
                        usual, n, show(views[1].sum))
          : fmt::format(
                "the first step of an epoch sees {} micro-batch{} (weights sum to {}), the next ones {}",
                first, first == 1 ? "" : "es", show(views[0].sum), usual);
  out.findings.push_back(std::move(finding));
  return true;
}

void wrong_sum(const Trace& trace, const Scan& scan, const std::vector<StepView>& views, std::size_t at,
               double n, Judgement& out) {
  const StepView& view = views[at];
  const auto size = static_cast<double>(view.weights.size());
  if (view.uncertain) {
    out.missing =
        fmt::format("whether the code that computes the loss of line {} divides it by the accumulation steps",
                    loss_line(trace, view));
    return;
  }
  if (near(view.sum * view.literal, 1) && view.equal) return;  // the divisor is written as a number
  const int line = loss_line(trace, view);
  if (near(view.sum, size)) {
    if (view.summed && !trace.trainer)
      return;  // a sum over examples: its scale is the learning rate's business
    if (const int divided = division_line(trace, view)) {
      out.findings.push_back(weight_finding("divide_after_backward", divided, views, at));
      return;
    }
    // Through time, say: a sum of losses that goes backward once, where nobody speaks of accumulation.
    if (!trace.trainer && one_backward(trace, view) && !trace.micro_loop_named && !scan.names_window())
      return;
    if (!trace.trainer && scan.mentions(".register_hook(")) {
      out.missing = "what the hooks do to the gradients";
      return;
    }
    // The recipe of a nominal batch: the loss is that of one example times the batch size.
    if (!trace.trainer && (scan.mentions("nbs /") || scan.mentions("nominal_batch"))) {
      out.missing = fmt::format("whether the loss of line {} is a sum over its examples", line);
      return;
    }
    if (trace.trainer && !trace.unknown_base.empty()) {
      out.missing = fmt::format("whether {} has the Trainer divide the loss (model_accepts_loss_kwargs)",
                                trace.unknown_base);
      return;
    }
    Finding finding = weight_finding(trace.trainer ? "custom_loss_bypass" : "no_division", line, views, at);
    if (!trace.trainer)
      finding.consequence = fmt::format(
          "each of {} micro-batches has weight 1: the gradient is {} times that of one batch of the same "
          "examples",
          show(size), show(size));
    out.findings.push_back(std::move(finding));
    return;
  }
  if (view.equal && n >= 2 &&
      (near(view.sum, 1 / n) || near(view.sum, 1 / size) || view.sum < 0.6 * size / n)) {
    Finding finding = weight_finding("double_division", line, views, at);
    finding.consequence = fmt::format("weights sum to {} instead of 1: the gradient is {} times too small",
                                      show(view.sum), show(1 / view.sum));
    out.findings.push_back(std::move(finding));
    return;
  }
  if (!view.equal) {
    out.findings.push_back(weight_finding("geometric_weighting", line, views, at));
    return;
  }
  (void)scan;
}

void judge_tails(const Trace& trace, const std::vector<StepView>& views, int optimizer, std::size_t usual,
                 double n, Judgement& out) {
  // Where data loops ended; a step that holds micro-batches of both sides mixes two epochs.
  std::set<int> lines;
  for (const auto& view : views)
    for (const int symbol : view.symbols) lines.insert(trace.symbols[static_cast<std::size_t>(symbol)].line);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    if (trace.events[i].kind != EventKind::LoopEnd || trace.events[i].truncated) continue;
    int last_stamp = 0;
    std::set<int> before;
    for (std::size_t j = 0; j < i; ++j)
      if (trace.events[j].kind == EventKind::Backward) {
        last_stamp = std::max(last_stamp, trace.events[j].stamp);
        for (const Term& term : trace.events[j].terms)
          if (lines.count(trace.symbols[static_cast<std::size_t>(term.symbol)].line))
            before.insert(term.symbol);
      }
    std::set<int> stepped;
    for (const auto& view : views) {
      if (view.event < i) {
        stepped.insert(view.symbols.begin(), view.symbols.end());
        continue;
      }
      bool old = false, fresh = false;
      for (const int symbol : view.symbols) (before.count(symbol) ? old : fresh) = true;
      const bool flushed_unseen = trace.open_flush && !trace.flushes;
      if (old && fresh && view.weights.size() > usual && !view.normalised && !flushed_unseen) {
        Finding finding = weight_finding("tail_leak", view.line, {view});
        finding.consequence = fmt::format(
            "the first step of the next epoch sums {} micro-batches instead of {} (weights sum to {})",
            view.weights.size(), usual, show(view.sum));
        add_finding(out, std::move(finding));
        return;
      }
      break;
    }
    // The last step before the end of the loop, over a partial window.
    for (auto view = views.rbegin(); view != views.rend(); ++view) {
      if (view->event >= i) continue;
      if (view->weights.size() < usual && !view->weights.empty() && !view->normalised && n >= 2 &&
          near(view->sum, static_cast<double>(view->weights.size()) / static_cast<double>(usual)))
        add_finding(out, weight_finding("tail_full_divisor", view->line, {*view}));
      break;
    }
    bool left = false;
    for (const int symbol : before) left = left || !stepped.count(symbol);
    if (!left) continue;
    bool later = false;
    for (const auto& view : views)
      for (const int symbol : view.symbols)
        later = later || (view.event > i && before.count(symbol) && !stepped.count(symbol));
    if (!later) add_finding(out, make_finding("tail_dropped", trace.events[i].line));
  }
  (void)optimizer;
}

}  // namespace

void judge_weights(const Trace& trace, const Scan& scan, int optimizer, Judgement& out) {
  auto views = views_of(trace, optimizer);
  views.erase(
      std::remove_if(views.begin(), views.end(), [](const StepView& view) { return view.weights.empty(); }),
      views.end());
  if (views.empty()) return;
  for (const auto& view : views)
    if (trace.events[view.event].in_hook && scan.accumulates()) {
      out.findings.push_back(weight_finding("step_in_backward_hook", view.line, views));
      out.accumulates = true;
      return;
    }
  if (reuses(trace, views, out)) {
    out.accumulates = true;
    return;
  }
  const std::size_t usual = usual_size(views);
  const double n = window_of(trace) > 0 ? window_of(trace) : static_cast<double>(usual);
  const bool meant = (scan.accumulates() && (trace.speaks_of_accumulation || trace.window_by_loop)) ||
                     trace.micro_loop_named || trace.used_accumulate;
  // Lightning's own N is simulated for every module; whether one is used is told by a file that speaks of it.
  out.accumulates = out.accumulates || (usual >= 2 && (!trace.lightning || scan.accumulates())) || meant;
  int drop_line = 0;
  const int dropped = dropped_in_window(trace, views, optimizer, drop_line);
  if (dropped * 2 >= static_cast<int>(views.size()) && dropped >= 2 && (meant || usual > 1)) {
    Finding finding = weight_finding("zero_grad_in_window", drop_line, views);
    finding.consequence = fmt::format(
        "a step sees {} of its micro-batches; the gradients of the others are thrown away", usual);
    out.findings.push_back(std::move(finding));
    return;
  }
  if (usual <= 1) {
    // A step for every micro-batch, each weighted for a window that never comes.
    const auto& view = views[views.size() / 2];
    if (meant && n >= 2 && !view.normalised && !view.uncertain && near(view.sum, 1 / n) &&
        views.size() >= 3 && !trace.trainer) {
      Finding finding = weight_finding("apply_inside_loop", view.line, views);
      finding.what = "the optimizer steps with every micro-batch although the loss is divided for a window";
      finding.consequence =
          fmt::format("no step sees more than one micro-batch, with weight {}", show(view.sum));
      if (trace.used_accumulate && trace.backward_in_context == 0)
        finding = weight_finding("backward_outside_context", view.line, views);
      out.findings.push_back(std::move(finding));
    }
    return;
  }
  if (!trace.token_windows && off_by_one(views, n, usual, out)) {
    // The windows after the first say whether the loss is divided too.
    const StepView& later = views[1];
    if (meant && later.weights.size() >= 2 && later.equal && !later.normalised && !later.summed &&
        near(later.sum, static_cast<double>(later.weights.size())))
      wrong_sum(trace, scan, views, 1, n, out);
    return;
  }
  // A representative full window, away from both ends.
  std::size_t at = views.size();
  for (std::size_t i = 0; i < views.size(); ++i)
    if (views[i].weights.size() == usual && (at == views.size() || i == 1)) at = i;
  const StepView& view = views[at];
  if (trace.dynamic_windows && !view.normalised && !trace.lightning) {
    std::set<int> sums;
    for (const auto& each : views) sums.insert(static_cast<int>(each.sum * 100 + 0.5));
    if (sums.size() > 1 && !near(view.sum, static_cast<double>(view.weights.size()))) {
      out.findings.push_back(weight_finding("dynamic_micro_batch_divisor", loss_line(trace, view), views));
      return;
    }
  }
  if (trace.token_windows) return;  // divided by what the window holds, or not at all: weights by tokens
  // Divided by a count that may be that of all processes, it is right.
  if (view.world > 1 && !view.normalised && !view.rescaled) {
    out.findings.push_back(weight_finding("world_size_rescale_cargo", loss_line(trace, view), views, at));
    if (near(view.sum, 1)) return;
  }
  const bool right = view.normalised || (near(view.sum, 1) && view.equal);
  // A mean of each micro-batch's token mean: right for examples, a small bias for tokens.
  const bool tokens = scan.mentions("ForCausalLM") || scan.mentions("ForTokenClassification") ||
                      scan.mentions("ForSeq2SeqLM") || scan.mentions("-100");
  if (right && !view.normalised && !view.summed && tokens && !trace.trainer)
    add_finding(out, make_finding("token_mean_of_means", loss_line(trace, view)));
  if (!right && (meant || trace.trainer)) wrong_sum(trace, scan, views, at, n, out);
  if (right && view.other_sum > 0 && view.other_sum > (view.normalised ? 1 : view.sum) * 1.5 &&
      near(view.other_sum, static_cast<double>(view.weights.size()))) {
    Finding finding = weight_finding("aux_loss_unscaled", view.other_line, views, at);
    finding.consequence = fmt::format("its weights sum to {} where those of the main loss sum to {}",
                                      show(view.other_sum), view.normalised ? "1" : show(view.sum));
    out.findings.push_back(std::move(finding));
  }
  judge_tails(trace, views, optimizer, usual, n, out);
}

}  // namespace batchwright::check
