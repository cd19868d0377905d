#include "check/log_collect.h"

#include <algorithm>
#include <cmath>

#include "check/log_line.h"

namespace batchwright::check {

using Q = Quantity;

void LogCollector::open_run(const std::string& heading, int line) {
  LogRun fresh;
  fresh.file = log_.file;
  fresh.line = line;
  fresh.name = heading.empty() ? log_.name : log_.name + ": " + heading;
  if (!runs_.empty() && runs_.back().train.empty() && runs_.back().evals.empty()) {
    fresh.declared = runs_.back().declared;  // settings printed before a heading belong to what follows
    fresh.words = runs_.back().words;
    runs_.pop_back();
  }
  runs_.push_back(std::move(fresh));
}

void LogCollector::keep(const LogRecord& record) {
  LogRun& r = current();
  const bool trains = !std::isnan(record.loss) || !std::isnan(record.grad_norm);
  if (trains) r.train.push_back(record);
  if (!std::isnan(record.eval_loss)) r.evals.push_back(record);
  if (!trains && std::isnan(record.eval_loss) && !std::isnan(record.learning_rate) &&
      !std::isnan(record.step))
    r.train.push_back(record);
}

// trainer_state.json's num_train_epochs and max_steps come out of the run: they are declared like the rest.
void LogCollector::declare(const std::string& key, const std::string& value) {
  LogRun& r = current();
  if (key == "learning_rate" || key == "lr") {
    if (const auto number = parse_number(value); number && r.train.empty())
      r.declared.emplace(Q::LearningRate, *number);
    return;
  }
  const std::optional<Quantity> quantity = declared_quantity(key);
  if (!quantity) return;
  if (*quantity == Q::ScheduleType || *quantity == Q::Optimizer || *quantity == Q::ModelName) {
    r.words[*quantity == Q::ScheduleType ? "schedule"
            : *quantity == Q::Optimizer  ? "optimizer"
                                         : "model"] = normal_key(value);
    return;
  }
  const std::optional<double> number = parse_number(value);
  if (!number || *number <= 0) return;
  if (*quantity == Q::MaxSteps && key == "step") return;
  r.declared[*quantity] = *number;
}

std::vector<LogRun> LogCollector::finish() {
  std::erase_if(runs_, [](const LogRun& r) { return r.train.empty() && r.evals.empty(); });
  for (LogRun& r : runs_)
    for (std::size_t i = 1; i < r.train.size(); ++i)
      if (r.train[i].step < r.train[i - 1].step) r.resumed_at.push_back(i);
  return std::move(runs_);
}

std::string normal_column(const std::string& key) {
  std::string result = normal_key(key);
  std::replace(result.begin(), result.end(), ' ', '_');
  return result;
}

bool starts_over(const LogRun& r, const LogRecord& record) {
  const LogRecord& first = r.train.front();
  const LogRecord& last = r.train.back();
  if (r.train.size() < 2 || std::isnan(record.loss)) return false;
  if (!std::isnan(record.step) && !std::isnan(last.step) && !std::isnan(first.step))
    return record.step < last.step && record.step <= first.step;
  if (!std::isnan(record.epoch) && !std::isnan(last.epoch))
    return record.epoch < last.epoch && record.epoch <= first.epoch * 1.001;
  return false;
}

}  // namespace batchwright::check
