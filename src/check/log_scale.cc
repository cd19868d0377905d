#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

// The loss with which a run starts, and how late it was read (a first record may average many steps).
struct FirstLoss {
  double loss = kUnknown, step = kUnknown, fraction = 0;
  int line = 0;
};

FirstLoss first_loss(const LoggedRun& run) {
  FirstLoss first;
  std::vector<double> early;
  for (const LogRecord& record : run.log.train) {
    if (std::isnan(record.loss)) continue;
    if (early.empty()) {
      first.step = record.step;
      first.fraction = run.progress(record).value_or(0);
      first.line = record.line;
    }
    early.push_back(record.loss);
    if (early.size() == 3) break;
  }
  if (!early.empty()) first.loss = early.size() < 3 ? early.front() : std::max(early.front(), median(early));
  return first;
}

bool near_start(const FirstLoss& first) {
  const bool by_step = !std::isnan(first.step) && first.step <= 10;
  return by_step || first.fraction <= 0.02;
}

std::string against(double loss, double reference, const char* name, double size) {
  return fmt::format("the first loss is {:.4g}, where ln({:g} {}) = {:.4g}: {:.3g} times it", loss, size,
                     name, reference, loss / reference);
}

void too_high(const LoggedRun& run, const FirstLoss& first, double reference, const char* name, double size,
              FindingList& found) {
  const double ratio = first.loss / reference, a = run.accumulation.value_or(1),
               w = run.processes.value_or(1);
  // A fine-tuned language model starts below ln(vocabulary), at 8 to 100 % of it; a fresh classifier close to
  // ln(classes).
  const double low = run.language_model && !run.from_scratch ? 0.08 : 0.75,
               high = run.language_model && !run.from_scratch ? 1.05 : 1.3;
  const bool by_accumulation = a >= 2 && ratio / a >= low && ratio / a <= high;
  const bool by_processes = !by_accumulation && w >= 2 && ratio / w >= low && ratio / w <= high;
  Finding& f =
      found.add(by_accumulation ? "loss_times_accum" : "loss_constant_factor", run.log.file, first.line);
  f.what = against(first.loss, reference, name, size);
  if (by_accumulation)
    f.consequence = fmt::format(
        "divided by the {:g} accumulation steps it is {:.4g}: the micro-batch losses are summed, not "
        "averaged",
        a, first.loss / a);
  else if (by_processes)
    f.consequence =
        fmt::format("divided by the {:g} processes it is {:.4g}: the loss is multiplied by the world size", w,
                    first.loss / w);
  else
    f.consequence =
        "no untrained model of that size starts so high: loss and gradient carry a constant factor";
}

void too_low(const LoggedRun& run, const FirstLoss& first, double reference, const char* name, double size,
             FindingList& found) {
  const double ratio = first.loss / reference, a = run.accumulation.value_or(1),
               w = run.processes.value_or(1);
  const double tolerance = run.language_model ? 0.12 : 0.25;
  const bool by_accumulation = a >= 2 && within_factor(ratio * a, 1, tolerance);
  const bool by_processes = !by_accumulation && w >= 2 && within_factor(ratio * w, 1, tolerance);
  const bool plain = run.from_scratch && ratio < 0.75;
  if (!by_accumulation && !by_processes && !plain) return;
  Finding& f =
      found.add(by_accumulation ? "log_divided_twice" : "loss_constant_factor", run.log.file, first.line);
  f.what = against(first.loss, reference, name, size);
  if (by_accumulation)
    f.consequence = fmt::format(
        "multiplied by the {:g} accumulation steps it is {:.4g}: the reported loss is divided once too often",
        a, first.loss * a);
  else if (by_processes)
    f.consequence =
        fmt::format("multiplied by the {:g} processes it is {:.4g}: the loss is divided by the world size", w,
                    first.loss * w);
  else
    f.consequence = "an untrained model cannot start so low: the loss carries a constant factor";
}

// Accumulation steps that nobody wrote down are mostly a power of two.
bool looks_like_steps(double factor) {
  const double power = std::exp2(std::round(std::log2(factor)));
  return power >= 4 && power <= 1024 && within_factor(factor, power, 0.1);
}

// How near a ratio must come to a small number of accumulation steps: a training loss of twice the evaluation
// loss has other causes too (augmentation, dropout, easier held-out data), one of eight times has none.
double chance(double accumulation) { return accumulation < 2.5 ? 0.12 : accumulation < 3.5 ? 0.2 : 0.33; }

}  // namespace

void check_first_loss(const LoggedRun& run, FindingList& found) {
  const FirstLoss first = first_loss(run);
  if (std::isnan(first.loss) || first.loss <= 0) return;
  if (run.classes && *run.classes >= 2 && *run.classes < 5000 && !run.language_model) {
    const double reference = std::log(*run.classes), ratio = first.loss / reference;
    if (ratio >= 1.65) return too_high(run, first, reference, "classes", *run.classes, found);
    if (ratio <= 0.66 && near_start(first)) too_low(run, first, reference, "classes", *run.classes, found);
  } else if (run.vocabulary && *run.vocabulary >= 1000) {
    const double reference = std::log(*run.vocabulary), ratio = first.loss / reference;
    if (ratio >= 1.35) return too_high(run, first, reference, "tokens", *run.vocabulary, found);
    if (ratio <= 0.75 && run.from_scratch && near_start(first))
      too_low(run, first, reference, "tokens", *run.vocabulary, found);
  } else if (run.language_model && first.loss > 14 && run.accumulation.value_or(1) >= 2) {
    // ln of the largest vocabularies in use (262,144 tokens) is 12.5.
    if (first.loss / *run.accumulation < 12.5)
      too_high(run, first, 12.5, "tokens, the largest vocabulary in use", 262144, found);
  }
}

// The evaluation loss is a plain mean: it shows what the training loss should be while the model has seen
// little.
void check_against_evaluation(const LoggedRun& run, FindingList& found) {
  std::vector<double> ratios, early;
  int line = 0;
  for (const LogRecord& eval : run.log.evals) {
    const LogRecord* nearest = nullptr;
    double best = 1e300;
    std::vector<double> around;
    for (const LogRecord& record : run.log.train) {
      if (std::isnan(record.loss)) continue;
      const double gap = !std::isnan(eval.step) && !std::isnan(record.step)
                             ? std::abs(eval.step - record.step)
                             : std::abs(eval.epoch - record.epoch);
      const bool inside_one_line = eval.line != 0 && eval.line == record.line;
      if (inside_one_line || gap < best) best = inside_one_line ? -1 : gap, nearest = &record;
    }
    if (nearest == nullptr) continue;
    const std::ptrdiff_t at = nearest - run.log.train.data();
    for (std::ptrdiff_t i = std::max<std::ptrdiff_t>(0, at - 2);
         i <= std::min<std::ptrdiff_t>(at + 2, static_cast<std::ptrdiff_t>(run.log.train.size()) - 1); ++i)
      around.push_back(run.log.train[static_cast<std::size_t>(i)].loss);
    const double train = run.log.train.size() > 20 ? median(around) : nearest->loss;
    if (!(eval.eval_loss > 0) || !(train > 0)) continue;
    ratios.push_back(train / eval.eval_loss);
    const double epoch = !std::isnan(eval.epoch)            ? eval.epoch
                         : run.epochs && run.progress(eval) ? *run.progress(eval) * *run.epochs
                                                            : kUnknown;
    if (std::isnan(epoch) ? early.size() < 2 : epoch <= 1.05) early.push_back(train / eval.eval_loss);
    if (line == 0) line = nearest->line;
  }
  if (early.empty() && !ratios.empty()) early.push_back(ratios.front());
  if (early.empty()) return;
  const double ratio = median(early), first = early.front(), a = run.accumulation.value_or(1),
               w = run.processes.value_or(1);
  const double spread =
      *std::max_element(early.begin(), early.end()) / *std::min_element(early.begin(), early.end());
  const auto report = [&](const char* kind, std::string consequence) {
    Finding& f = found.add(kind, run.log.file, line);
    f.what = fmt::format("the training loss is {:.3g} times the evaluation loss from the start", ratio);
    f.consequence = std::move(consequence);
  };
  // Early averages over a falling loss hide a constant that shows once both have settled.
  if (ratios.size() >= 4) {
    const auto last = ratios.end() - 3;
    const double settled = median(std::vector<double>(last, ratios.end()));
    const double width = *std::max_element(last, ratios.end()) / *std::min_element(last, ratios.end());
    const bool falls = first > 1.6 * settled || spread >= 1.25;
    if (falls && ratio > settled && settled >= 6 && width < 1.1) {
      const bool summed = a >= 2 ? within_factor(settled, a, chance(a)) : looks_like_steps(settled);
      Finding& f = found.add(summed ? "loss_times_accum" : "loss_constant_factor", run.log.file, line);
      f.what = fmt::format("the training loss settles at {:.3g} times the evaluation loss", settled);
      f.consequence = "one constant stands between the two: the losses of a window are summed, not averaged";
      return;
    }
  }
  if (ratio >= 1.7 && first >= 1.6) {
    if (a >= 2 && within_factor(ratio, a, chance(a)))
      return report("loss_times_accum",
                    fmt::format("that is the {:g} accumulation steps: the micro-batch losses are summed", a));
    const bool steady = early.size() >= 2 && spread < 1.25 && ratio >= 1.9;
    const bool by_processes = w >= 2 && within_factor(ratio, w, 0.15);
    if (steady || by_processes)
      report(!by_processes && !run.accumulation && looks_like_steps(ratio) ? "loss_times_accum"
                                                                           : "loss_constant_factor",
             by_processes
                 ? fmt::format("that is the {:g} processes: the loss is multiplied by the world size", w)
                 : "one constant stands between the two");
  } else if (ratio <= 0.6 && first <= 0.66) {
    if (a >= 2 && within_factor(ratio * a, 1, chance(a)))
      return report(
          "log_divided_twice",
          fmt::format("that is 1/{:g} of the accumulation steps: the reported loss is divided once too often",
                      a));
    const bool by_processes = w >= 2 && within_factor(ratio * w, 1, 0.12);
    const bool steady = (early.size() >= 3 && spread < 1.15 && ratio < 0.55) ||
                        (early.size() >= 2 && spread < 1.25 && ratio < 0.3);
    if (by_processes || steady)
      report(!by_processes && !run.accumulation && looks_like_steps(1 / ratio) ? "log_divided_twice"
                                                                               : "loss_constant_factor",
             by_processes
                 ? fmt::format("that is 1/{:g} of the processes: the loss is divided by the world size", w)
                 : "one constant stands between the two");
  }
}

}  // namespace batchwright::check
