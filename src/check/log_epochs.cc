#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

// Records that carry both a step and a fractional epoch, as the Trainer logs them.
std::vector<LogRecord> counted(const LoggedRun& run) {
  std::vector<LogRecord> records;
  for (const LogRecord& record : run.log.train) {
    if (std::isnan(record.step) || std::isnan(record.epoch)) continue;
    if (!records.empty() && record.step <= records.back().step) continue;
    records.push_back(record);
  }
  return records;
}

bool fractional(const std::vector<LogRecord>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const LogRecord& r) { return std::floor(r.epoch) != r.epoch; });
}

// Micro-batches that one process sees in an epoch.
std::optional<double> batches_per_epoch(const LoggedRun& run) {
  if (!run.examples || !run.micro_batch || !run.processes || *run.micro_batch < 1) return std::nullopt;
  return std::ceil(*run.examples / (*run.micro_batch * *run.processes));
}

// How epoch and step move together when windows are flushed, dropped or carried over at an epoch's end.
enum class Edge { Flushed, Dropped, Carried };

double epoch_at(double step, double batches, double accumulation, Edge edge) {
  const double per_step = accumulation / batches;
  if (edge == Edge::Carried) return step * per_step;
  const double steps =
      edge == Edge::Flushed ? std::ceil(batches / accumulation) : std::floor(batches / accumulation);
  if (steps < 1) return kUnknown;
  const double done = std::floor((step - 1) / steps);  // whole epochs before this step's
  return std::min(done + 1, done + (step - done * steps) * per_step);
}

double misfit(const std::vector<LogRecord>& records, double batches, double accumulation, Edge edge) {
  double worst = 0;
  for (const LogRecord& record : records)
    worst = std::max(worst, std::abs(record.epoch - epoch_at(record.step, batches, accumulation, edge)));
  return worst;
}

void crossing(const LoggedRun& run, FindingList& found, const std::string& how) {
  Finding& f = found.add("window_crosses_epoch", run.log.file, run.log.line);
  f.what = how;
  f.consequence = "the window at an epoch's end takes its missing micro-batches from the next epoch";
}

// Data size and split known: one of three ways explains every pair of step and epoch.
bool by_arithmetic(const LoggedRun& run, const std::vector<LogRecord>& records, FindingList& found) {
  const std::optional<double> batches = batches_per_epoch(run);
  const double a = run.accumulation.value_or(1);
  if (!batches || a < 2 || std::fmod(*batches, a) == 0 || records.size() < 4 || records.back().epoch < 2)
    return false;
  const double carried = misfit(records, *batches, a, Edge::Carried),
               flushed = misfit(records, *batches, a, Edge::Flushed),
               dropped = misfit(records, *batches, a, Edge::Dropped);
  constexpr double kRounding = 0.0075;  // logs round epochs to two decimals
  if (carried <= kRounding && flushed > 3 * kRounding && dropped > 3 * kRounding) {
    crossing(run, found,
             fmt::format("{:g} micro-batches an epoch at {:g} a window are {:.2f} steps, and the epoch grows "
                         "by exactly that share with every step",
                         *batches, a, *batches / a));
    return true;
  }
  return dropped <= kRounding || flushed <= kRounding;
}

// Only the log: the epoch is a straight line of the step although an epoch is no whole number of steps.
// Flushed and dropped windows bend that line at every epoch's end.
bool by_straight_line(const LoggedRun& run, const std::vector<LogRecord>& records, FindingList& found) {
  if (records.size() < 8 || records.back().epoch < 2 || !fractional(records) ||
      run.accumulation.value_or(2) < 2)
    return false;
  double products = 0, squares = 0;
  for (const LogRecord& record : records)
    products += record.step * record.epoch, squares += record.step * record.step;
  const double slope = products / squares;
  double worst = 0;
  bool coarse = true;  // epochs of two decimals
  for (const LogRecord& record : records) {
    worst = std::max(worst, std::abs(record.epoch - slope * record.step));
    coarse = coarse && std::abs(record.epoch * 100 - std::round(record.epoch * 100)) < 1e-6;
  }
  const double rounding = coarse ? 0.0055 : 0.0011;
  const double steps = 1 / slope, off = std::abs(steps - std::round(steps));
  // How far rounded epochs can mislead about the number of steps in one.
  const double doubt = 2 * steps * rounding / records.back().epoch;
  const double bend =
      off / steps * std::floor(records.back().epoch);  // what a flushed or dropped tail would add up to
  if (worst > rounding || off < std::max(0.04, 2 * doubt) || bend < 3 * rounding) return false;
  crossing(
      run, found,
      fmt::format(
          "an epoch is {:.3g} optimizer steps, and the epoch grows in a straight line over {:.3g} epochs",
          steps, records.back().epoch));
  return true;
}

// Only the log: complete epochs of one more and one less step take turns.
void by_counting(const LoggedRun& run, const std::vector<LogRecord>& records, FindingList& found) {
  if (records.size() < 9 || run.accumulation.value_or(2) < 2 || !run.log.resumed_at.empty()) return;
  const bool fractions = fractional(records);
  double smallest_gap = 1e9;
  for (std::size_t i = 1; i < records.size(); ++i) {
    if (records[i].step - records[i - 1].step != 1) return;  // only logs of every step can be counted
    if (records[i].epoch > records[i - 1].epoch)
      smallest_gap = std::min(smallest_gap, records[i].epoch - records[i - 1].epoch);
  }
  if (fractions && smallest_gap < 0.012) return;  // two decimals do not tell the steps apart
  std::vector<int> counts;
  double current = fractions ? std::ceil(records.front().epoch - 1e-9) : records.front().epoch;
  int steps = 0;
  for (const LogRecord& record : records) {
    const double epoch = fractions ? std::ceil(record.epoch - 1e-9) : record.epoch;
    if (epoch != current) {
      counts.push_back(steps);
      steps = 0;
      current = epoch;
    }
    ++steps;
  }
  // The last epoch may be cut short, the first one may begin before the log.
  if (records.front().step > 1 && !counts.empty()) counts.erase(counts.begin());
  if (counts.size() < 3) return;
  const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
  if (*high - *low != 1 || *low < 1) return;
  const auto many = std::count(counts.begin(), counts.end(), *high);
  if (many == 0 || many == static_cast<std::ptrdiff_t>(counts.size())) return;
  if (fractions && records.size() > 2) {
    // Flushed windows end exactly on whole epochs; carried ones only by chance.
    int whole = 0;
    for (const LogRecord& record : records)
      whole += std::abs(record.epoch - std::round(record.epoch)) < 0.004 ? 1 : 0;
    if (whole >= static_cast<int>(counts.size())) return;
  }
  crossing(run, found,
           fmt::format("epochs of {} and {} optimizer steps take turns over {} epochs", *low, *high,
                       counts.size()));
}

struct Edges {
  std::vector<double> first, last, inside;  // value against its neighbours within and across the edge
};

double median_of(const std::vector<LogRecord>& records, double LogRecord::* field, std::size_t from,
                 std::size_t to) {
  std::vector<double> values;
  for (std::size_t i = from; i < std::min(to, records.size()); ++i) values.push_back(records[i].*field);
  return median(values);
}

// A step stands out only against both sides: losses and norms may well change from one epoch to the next.
Edges edge_ratios(const std::vector<LogRecord>& records, double LogRecord::* field) {
  Edges edges;
  for (std::size_t i = 1; i + 1 < records.size(); ++i) {
    const double value = records[i].*field;
    const double before = median_of(records, field, i >= 6 ? i - 6 : 0, i),
                 after = median_of(records, field, i + 1, i + 7);
    if (!(value > 0) || !(before > 0) || !(after > 0)) continue;
    const auto epoch = [&](std::size_t k) { return std::ceil(records[k].epoch - 1e-6); };
    const bool first = epoch(i) != epoch(i - 1), last = !first && epoch(i) != epoch(i + 1);
    const double low = std::min(value / before, value / after),
                 high = std::max(value / before, value / after);
    const double ratio = low > 1 ? low : high < 1 ? high : 1;
    (first ? edges.first : last ? edges.last : edges.inside).push_back(ratio);
  }
  return edges;
}

bool mostly(const std::vector<double>& values, bool above, double limit) {
  const auto count =
      std::count_if(values.begin(), values.end(), [&](double v) { return above ? v > limit : v < limit; });
  return static_cast<double>(count) >= 0.8 * static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return kUnknown;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

// How many standard errors the edges lie above the other steps, in logarithms.
double standard_errors(const Edges& edges) {
  double sum = 0, squares = 0, mean = 0;
  for (const double v : edges.inside) sum += std::log(v), squares += std::log(v) * std::log(v);
  const double n = static_cast<double>(edges.inside.size());
  const double deviation = std::sqrt(std::max(1e-8, squares / n - sum / n * sum / n));
  for (const double v : edges.first) mean += std::log(v) / static_cast<double>(edges.first.size());
  return (mean - sum / n) * std::sqrt(static_cast<double>(edges.first.size())) / deviation;
}

}  // namespace

void check_steps_per_epoch(const LoggedRun& run, FindingList& found) {
  const std::vector<LogRecord> records = counted(run);
  const bool counts = records.size() >= 2 && fractional(records);
  // Without steps on its records a log may still have said at its start how many there will be.
  const bool announced = !counts && run.total_steps && run.epochs;
  if (!counts && !announced) return;
  const double steps = counts ? records.back().step - records.front().step : *run.total_steps,
               epochs = counts ? records.back().epoch - records.front().epoch : *run.epochs;
  std::optional<double> batches = batches_per_epoch(run);
  const bool world_known = batches.has_value();
  // With one process there are the most steps.
  if (!batches && run.examples && run.micro_batch && *run.micro_batch >= 1)
    batches = std::ceil(*run.examples / *run.micro_batch);
  if (epochs < 0.25 || !batches || !run.accumulation || steps < 4) return;
  const double measured = steps / epochs, a = *run.accumulation, w = run.processes.value_or(1);
  const double expected = *batches / a;
  const auto near = [&](double value) { return std::abs(measured - value) <= std::max(1.0, 0.04 * value); };
  if (near(expected) || near(std::ceil(expected)) || near(std::floor(expected))) return;
  const auto report = [&](const char* kind, const std::string& meaning) {
    Finding& f = found.add(kind, run.log.file, run.log.line);
    f.what = fmt::format("{:.4g} steps an epoch, where {:g} examples at {:g} a step give {:.4g}", measured,
                         *run.examples, *run.micro_batch * a * w, std::ceil(expected));
    f.consequence = meaning;
  };
  if (a >= 2 && near(*batches))
    return report("apply_inside_loop", "that is every micro-batch: nothing is accumulated");
  if (!world_known) return;
  if (w >= 2 && near(std::ceil(expected * w)))
    return report("world_size_effective_batch",
                  "that is the count of one process alone: the data are not divided among the processes, or "
                  "only one runs");
  if (w >= 2 && near(std::ceil(expected / w)))
    return report("world_size_effective_batch",
                  fmt::format("each step sees {:g} times the examples: the world size is counted twice", w));
  if (a >= 2 && near(std::ceil(expected / a)))
    return report("world_size_effective_batch",
                  fmt::format("each step sees {:g} times the examples: accumulation is counted twice", a));
}

// max_steps wins over the number of epochs: the log shows how many were made of it.
void check_epochs_made(const LoggedRun& run, FindingList& found) {
  if (!run.epochs_asked || !run.max_steps_asked || *run.epochs_asked <= 0 || run.log.train.empty()) return;
  double made = 0;
  for (const LogRecord& record : run.log.train)
    made = std::isnan(record.epoch) ? made : std::max(made, record.epoch);
  if (made < 1.8 * *run.epochs_asked || made - *run.epochs_asked < 1) return;
  Finding& f = found.add("max_steps_unit", run.log.file, run.log.line);
  f.what = fmt::format("max_steps {:g} made {:.3g} epochs, and {:g} were asked for", *run.max_steps_asked,
                       made, *run.epochs_asked);
}

void check_epoch_edges(const LoggedRun& run, FindingList& found) {
  const std::vector<LogRecord> records = counted(run);
  if (records.size() >= 4 && !by_arithmetic(run, records, found) && !by_straight_line(run, records, found))
    by_counting(run, records, found);
  std::vector<LogRecord> each = records;
  for (std::size_t i = 1; i < each.size(); ++i) {
    if (each[i].step - each[i - 1].step != 1) return;  // edges show only where every step is logged
  }
  if (each.size() < 12 || run.accumulation.value_or(2) < 2) return;
  const Edges norm = edge_ratios(each, &LogRecord::grad_norm);
  const Edges loss = edge_ratios(each, &LogRecord::loss);
  // The noise inside epochs sets the bar: four standard errors above it, or all edges above nineteen in
  // twenty steps.
  const auto leaks = [&](const Edges& e) {
    if (e.first.size() < 2 || e.inside.size() < 8 || median(e.first) < 1.15) return false;
    const bool far_out =
        e.first.size() >= 3 && mostly(e.first, true, std::max(1.1, quantile(e.inside, 0.95)));
    return far_out || standard_errors(e) > 4;
  };
  if (leaks(norm) || leaks(loss)) {
    Finding& f = found.add("tail_leak", run.log.file, run.log.line);
    f.what = fmt::format("the first step of every epoch has {:.2f} times the {} of its neighbours",
                         median((leaks(norm) ? norm : loss).first), leaks(norm) ? "gradient norm" : "loss");
    return;
  }
  const auto dips = [&](const Edges& e) {
    const double usual = std::min(0.9, quantile(e.inside, 0.1));
    return e.last.size() >= 2 && mostly(e.last, false, usual) && median(e.last) < 0.8;
  };
  if (dips(norm) || dips(loss)) {
    Finding& f = found.add("tail_full_divisor", run.log.file, run.log.line);
    f.what = fmt::format("the last step of every epoch has {:.2f} times the {} of its neighbours",
                         median((dips(norm) ? norm : loss).last), dips(norm) ? "gradient norm" : "loss");
  }
}

}  // namespace batchwright::check
