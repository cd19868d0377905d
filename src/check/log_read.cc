#include "check/log_read.h"

#include <algorithm>
#include <cctype>

#include "check/log_collect.h"
#include "check/log_line.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

// Logs of lines: whatever a training prints, with the records among it.
class LineReader {
 public:
  LineReader(const LogText& text, LogCollector& log) : text_(text), log_(log), rows_(log) {}

  // A carriage return alone redraws a progress bar: still the same line for an editor.
  void lines() {
    line_ = text_.first_line;
    for (std::size_t start = 0; start < text_.text.size();) {
      const std::size_t end = std::min(text_.text.find_first_of("\r\n", start), text_.text.size());
      if (end > start) one_line(text_.text.substr(start, end - start));
      if (end < text_.text.size() && text_.text[end] == '\n') ++line_;
      start = end + 1;
    }
  }

 private:
  void open_run(const std::string& heading) {
    log_.open_run(heading, line_);
    progress_.reset();
  }

  void one_line(std::string_view row) {
    if (rows_.take(row, line_)) return;
    if (const auto progress = progress_of_line(row)) {
      progress_ = progress;
      if (log_.current().declared.count(Q::MaxSteps) == 0 && progress->second > 1)
        log_.current().declared[Q::ScheduleSteps] = progress->second;
    }
    if (row.find("Running training") != std::string_view::npos && log_.has_records()) open_run("");
    std::vector<LinePair> pairs = pairs_of_line(row);
    if (pairs.empty()) return heading(row);
    LogRecord record;
    record.line = line_;
    std::vector<const LinePair*> settings;
    bool any = false;
    for (const LinePair& pair : pairs) {
      if (set_field(record, pair.key, pair.value))
        any = true;
      else
        settings.push_back(&pair);
    }
    const bool values = !std::isnan(record.loss) || !std::isnan(record.eval_loss) ||
                        !std::isnan(record.grad_norm) ||
                        (!std::isnan(record.learning_rate) && !std::isnan(record.step));
    const bool summary = row.find("train_runtime") != std::string_view::npos;
    if (any && values && !summary) return data_line(record, settings);
    if (summary) return;
    setting_line(row, pairs);
  }

  void data_line(LogRecord record, const std::vector<const LinePair*>& others) {
    if (std::isnan(record.step) && progress_) record.step = progress_->first;
    if (log_.has_records() && starts_over(log_.current(), record)) open_run("");
    for (const LinePair* pair : others) {
      if (pair->key == "global_batch_size" || pair->key == "num_labels" || pair->key == "vocab_size")
        log_.declare(pair->key, pair->value);
    }
    log_.keep(record);
  }

  // A line of settings behind records opens the next run.
  void setting_line(std::string_view row, const std::vector<LinePair>& pairs) {
    bool batch_words = false;
    for (const LinePair& pair : pairs) {
      const auto quantity = declared_quantity(pair.key);
      batch_words = batch_words || (quantity && (*quantity == Q::Accumulation || *quantity == Q::MicroBatch ||
                                                 *quantity == Q::GlobalBatch));
    }
    if (batch_words && log_.has_records()) open_run(std::string(row.substr(0, 60)));
    for (const LinePair& pair : pairs) log_.declare(pair.key, pair.value);
  }

  void heading(std::string_view row) {
    const std::size_t first = row.find_first_not_of(" \t");
    const bool marked =
        first != std::string_view::npos && (row[first] == '#' || row.substr(first, 3) == "===" ||
                                            row.substr(first, 3) == "---" || row.substr(first, 2) == "**");
    if (marked && log_.has_records() &&
        row.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos)
      open_run(std::string(row.substr(first, 60)));
    rows_.forget();
  }

  const LogText& text_;
  LogCollector& log_;
  LogRows rows_;
  std::optional<std::pair<double, double>> progress_;
  int line_ = 0;
};

}  // namespace

std::vector<LogRun> read_logs(const LogText& log) {
  const std::size_t first = log.text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return {};
  LogCollector collected(log);
  const bool whole_json = log.text[first] == '{' || log.text[first] == '[';
  if (!whole_json || !read_json_log(log.text.substr(first), collected)) {
    collected.open_run("", 0);
    LineReader(log, collected).lines();
  }
  return collected.finish();
}

bool looks_like_log(std::string_view text) {
  const LogText log{.text = text.substr(0, 200'000), .file = 0, .first_line = 1, .name = ""};
  std::size_t records = 0;
  for (const LogRun& r : read_logs(log)) records += r.train.size() + r.evals.size();
  return records >= 2 || !read_comparison_tables(log).empty();
}

}  // namespace batchwright::check
