#pragma once

#include <string>
#include <vector>

#include "check/log_read.h"

namespace batchwright::check {

// Gathers the runs of one text while it is read: records and declared settings go to the run that is open.
class LogCollector {
 public:
  explicit LogCollector(const LogText& log) : log_(log) {}

  // A run begins at the given line; settings that were declared without a record belong to it.
  void open_run(const std::string& heading, int line);
  LogRun& current() { return runs_.back(); }
  bool has_records() const { return !runs_.back().train.empty(); }
  void keep(const LogRecord& record);
  // `key` as normal_column or normal_key give it.
  void declare(const std::string& key, const std::string& value);
  const std::string& name() const { return log_.name; }

  // The runs that hold records.
  std::vector<LogRun> finish();

 private:
  const LogText& log_;
  std::vector<LogRun> runs_;
};

// A column's or a JSON key's name: normal_key, with '_' for spaces.
std::string normal_column(const std::string& key);

// Whether a record cannot follow those of the run: the next run of the same file starts from the beginning
// again; a resumed run goes back less far.
bool starts_over(const LogRun& run, const LogRecord& record);

// Reads a JSON document; false (and nothing collected) when the text is none.
bool read_json_log(std::string_view text, LogCollector& log);

// Rows of CSV and of Markdown tables, one line at a time.
class LogRows {
 public:
  explicit LogRows(LogCollector& log) : log_(log) {}
  // Whether the line was a row, a rule or a header of a table.
  bool take(std::string_view row, int line);
  void forget() { csv_.clear(), table_.clear(); }

 private:
  bool csv_row(std::string_view row, int line);
  bool table_row(std::string_view row, int line);
  void record(const std::vector<std::string>& names, const std::vector<std::string>& values, int line);

  LogCollector& log_;
  std::vector<std::string> csv_, table_;  // the columns' names
  char separator_ = ',';
};

}  // namespace batchwright::check
