// Logs in columns: CSV with a header, Markdown tables of steps.
#include <algorithm>
#include <cmath>

#include "check/log_collect.h"
#include "check/log_line.h"

namespace batchwright::check {
namespace {

bool header_has_loss(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    LogRecord r;
    return set_field(r, normal_column(name), "1") && (!std::isnan(r.loss) || !std::isnan(r.eval_loss));
  });
}

void declare_column(LogCollector& log, const std::string& name, const std::string& value) {
  if (name == "gradient_accumulation_steps" || name == "per_device_train_batch_size" || name == "world_size")
    log.declare(name, value);
}

}  // namespace

bool LogRows::take(std::string_view row, int line) { return table_row(row, line) || csv_row(row, line); }

bool LogRows::csv_row(std::string_view row, int line) {
  if (csv_.empty()) {
    if (row.find('{') != std::string_view::npos || row.find('=') != std::string_view::npos ||
        row.find(':') != std::string_view::npos)
      return false;
    const char separator =
        row.find('\t') != std::string_view::npos && row.find(',') == std::string_view::npos ? '\t' : ',';
    std::vector<std::string> names = split_cells(row, separator);
    const bool numeric = std::any_of(names.begin(), names.end(),
                                     [](const std::string& n) { return parse_number(n).has_value(); });
    if (names.size() < 2 || numeric || !header_has_loss(names)) return false;
    csv_ = std::move(names);
    separator_ = separator;
    if (log_.has_records()) log_.open_run("", line);
    return true;
  }
  const std::vector<std::string> values = split_cells(row, separator_);
  if (values.size() != csv_.size()) {
    csv_.clear();
    return false;
  }
  record(csv_, values, line);
  return true;
}

bool LogRows::table_row(std::string_view row, int line) {
  const std::size_t first = row.find_first_not_of(" \t");
  if (first == std::string_view::npos || row[first] != '|' || std::count(row.begin(), row.end(), '|') < 3)
    return false;
  row = row.substr(first + 1);
  row = row.substr(0, row.find_last_of('|'));
  const std::vector<std::string> values = split_cells(row, '|');
  if (row.find_first_not_of(" |-:") == std::string_view::npos) return true;
  const bool numeric = std::any_of(values.begin(), values.end(),
                                   [](const std::string& n) { return parse_number(n).has_value(); });
  if (!numeric) {
    table_ = values;
    // A table over accumulation steps compares runs; its rows are no steps of one run.
    const bool steps = std::any_of(values.begin(), values.end(), [](const std::string& n) {
      const std::string k = normal_column(n);
      return k == "step" || k == "steps" || k == "epoch" || k == "global_step" || k == "iteration";
    });
    if (!header_has_loss(values) || !steps) table_.clear();
    return !table_.empty();
  }
  if (table_.size() != values.size()) return false;
  record(table_, values, line);
  return true;
}

void LogRows::record(const std::vector<std::string>& names, const std::vector<std::string>& values,
                     int line) {
  LogRecord record;
  record.line = line;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!set_field(record, normal_column(names[i]), values[i]))
      declare_column(log_, normal_column(names[i]), values[i]);
  }
  if (log_.has_records() && starts_over(log_.current(), record)) log_.open_run("", line);
  log_.keep(record);
}

}  // namespace batchwright::check
