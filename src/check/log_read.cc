#include "check/log_read.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "check/log_line.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

class LogReader {
 public:
  explicit LogReader(const LogText& log) : log_(log) {}

  std::vector<LogRun> run() {
    const std::size_t first = log_.text.find_first_not_of(" \t\r\n\xef\xbb\xbf");
    if (first == std::string_view::npos) return {};
    const bool whole_json = log_.text[first] == '{' || log_.text[first] == '[';
    if (whole_json && json_document(log_.text.substr(first))) return finish();
    open_run("");
    lines();
    return finish();
  }

 private:
  std::vector<LogRun> finish() {
    std::erase_if(runs_, [](const LogRun& r) { return r.train.empty() && r.evals.empty(); });
    for (LogRun& r : runs_) note_resumes(r);
    return std::move(runs_);
  }

  void open_run(const std::string& heading) {
    LogRun fresh;
    fresh.file = log_.file;
    fresh.line = line_;
    fresh.name = heading.empty() ? log_.name : log_.name + ": " + heading;
    if (!runs_.empty() && runs_.back().train.empty() && runs_.back().evals.empty()) {
      fresh.declared = runs_.back().declared;  // settings printed before a heading belong to what follows
      fresh.words = runs_.back().words;
      runs_.pop_back();
    }
    runs_.push_back(std::move(fresh));
    progress_.reset();
  }

  LogRun& current() { return runs_.back(); }

  void keep(LogRecord record) {
    LogRun& r = current();
    const bool trains = !std::isnan(record.loss) || !std::isnan(record.grad_norm);
    if (trains) r.train.push_back(record);
    if (!std::isnan(record.eval_loss)) r.evals.push_back(record);
    if (!trains && std::isnan(record.eval_loss) && !std::isnan(record.learning_rate) &&
        !std::isnan(record.step))
      r.train.push_back(record);
  }

  // ---- JSON documents ----

  bool json_document(std::string_view text) {
    Json root;
    try {
      root = parse_json(text, log_.name);
    } catch (const Error&) {
      return false;
    }
    open_run("");
    json_value(root, "", 0);
    return true;
  }

  void json_value(const Json& value, const std::string& path, int depth) {
    if (depth > 20) return;
    if (value.is_array()) return json_array(value, path, depth);
    if (!value.is_object()) return;
    if (columns(value, path)) return;
    std::set<std::string> own;
    const bool has_history = value.contains("log_history");
    const bool opens = !path.empty() && holds_records(value);
    if (opens) open_run(path);
    for (const auto& [key, item] : value.items()) {
      if (item.is_object() || item.is_array()) continue;
      declare(key, item);
    }
    for (const auto& [key, item] : value.items()) {
      if (item.is_object() || item.is_array())
        json_value(item, has_history || key == "records" || key == "log" ? path : join(path, key), depth + 1);
    }
  }

  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  static bool is_record(const Json& item) {
    if (!item.is_object()) return false;
    LogRecord probe;
    for (const auto& [key, value] : item.items()) {
      if (value.is_number() || value.is_string()) set_field(probe, normal(key), text_of(value));
    }
    return !std::isnan(probe.loss) || !std::isnan(probe.eval_loss) ||
           (!std::isnan(probe.grad_norm) && !std::isnan(probe.step)) ||
           (!std::isnan(probe.learning_rate) && !std::isnan(probe.step));
  }

  static bool holds_records(const Json& object) {
    return std::any_of(object.begin(), object.end(), [](const Json& item) {
      return item.is_array() && !item.empty() && is_record(item[0]);
    });
  }

  static std::string normal(const std::string& key) {
    std::string result = normal_key(key);
    std::replace(result.begin(), result.end(), ' ', '_');
    return result;
  }

  static std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  void json_array(const Json& array, const std::string& path, int depth) {
    const bool records = std::any_of(array.begin(), array.end(), is_record);
    if (!records) {
      std::size_t index = 0;
      for (const Json& item : array) {
        if (index > 200) break;
        json_value(item,
                   join(path, item.is_object() && item.contains("name") && item["name"].is_string()
                                  ? item["name"].get<std::string>()
                                  : std::to_string(index)),
                   depth + 1);
        ++index;
      }
      return;
    }
    const bool history = path.empty() || path == "log_history";
    if (!history && !current().train.empty()) open_run(path);
    if (!history && current().name == log_.name) current().name = log_.name + ": " + path;
    for (const Json& item : array) {
      if (!item.is_object()) continue;
      LogRecord record;
      for (const auto& [key, value] : item.items()) {
        if (value.is_number() || value.is_string()) set_field(record, normal(key), text_of(value));
      }
      keep(record);
    }
  }

  // {"step": [...], "loss": [...]}
  bool columns(const Json& object, const std::string& path) {
    const Json* losses = nullptr;
    for (const auto& [key, value] : object.items()) {
      LogRecord probe;
      if (value.is_array() && value.size() >= 2 && value[0].is_number() &&
          set_field(probe, normal(key), "1") && !(std::isnan(probe.loss) && std::isnan(probe.eval_loss)))
        losses = &value;
    }
    if (losses == nullptr) return false;
    open_run(path);
    for (const auto& [key, value] : object.items()) {
      if (!value.is_array() && !value.is_object()) declare(key, value);
    }
    for (std::size_t i = 0; i < losses->size(); ++i) {
      LogRecord record;
      for (const auto& [key, value] : object.items()) {
        if (value.is_array() && i < value.size() && value[i].is_number())
          set_field(record, normal(key), value[i].dump());
      }
      keep(record);
    }
    return true;
  }

  void declare(const std::string& key, const Json& value) {
    if (value.is_string() || value.is_number()) declare(normal(key), text_of(value));
  }

  // trainer_state.json's num_train_epochs and max_steps come out of the run: they are declared like the rest.
  void declare(const std::string& key, const std::string& value) {
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

  // ---- lines ----

  // A carriage return alone redraws a progress bar: still the same line for an editor.
  void lines() {
    line_ = log_.first_line;
    for (std::size_t start = 0; start < log_.text.size();) {
      const std::size_t end = std::min(log_.text.find_first_of("\r\n", start), log_.text.size());
      if (end > start) one_line(log_.text.substr(start, end - start));
      if (end < log_.text.size() && log_.text[end] == '\n') ++line_;
      start = end + 1;
    }
  }

  void one_line(std::string_view row) {
    if (table_row(row) || csv_row(row)) return;
    if (const auto progress = progress_of_line(row)) {
      progress_ = progress;
      if (current().declared.count(Q::MaxSteps) == 0 && progress->second > 1)
        current().declared[Q::ScheduleSteps] = progress->second;
    }
    if (row.find("Running training") != std::string_view::npos && !current().train.empty()) open_run("");
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
    LogRun& r = current();
    if (!r.train.empty() && starts_over(r, record)) open_run("");
    for (const LinePair* pair : others) {
      if (pair->key == "global_batch_size" || pair->key == "num_labels" || pair->key == "vocab_size")
        declare(pair->key, pair->value);
    }
    keep(record);
  }

  // The next run of the same file starts from the beginning again; a resumed run goes back less far.
  static bool starts_over(const LogRun& r, const LogRecord& record) {
    const LogRecord& first = r.train.front();
    const LogRecord& last = r.train.back();
    if (r.train.size() < 2 || std::isnan(record.loss)) return false;
    if (!std::isnan(record.step) && !std::isnan(last.step) && !std::isnan(first.step))
      return record.step < last.step && record.step <= first.step;
    if (!std::isnan(record.epoch) && !std::isnan(last.epoch))
      return record.epoch < last.epoch && record.epoch <= first.epoch * 1.001;
    return false;
  }

  // A line of settings behind records opens the next run.
  void setting_line(std::string_view row, const std::vector<LinePair>& pairs) {
    bool batch_words = false;
    for (const LinePair& pair : pairs) {
      const auto quantity = declared_quantity(pair.key);
      batch_words = batch_words || (quantity && (*quantity == Q::Accumulation || *quantity == Q::MicroBatch ||
                                                 *quantity == Q::GlobalBatch));
    }
    if (batch_words && !current().train.empty()) open_run(std::string(row.substr(0, 60)));
    for (const LinePair& pair : pairs) declare(pair.key, pair.value);
  }

  void heading(std::string_view row) {
    const std::size_t first = row.find_first_not_of(" \t");
    const bool marked =
        first != std::string_view::npos && (row[first] == '#' || row.substr(first, 3) == "===" ||
                                            row.substr(first, 3) == "---" || row.substr(first, 2) == "**");
    if (marked && !current().train.empty() &&
        row.find_first_of("abcdefghijklmnopqrstuvwxyz") != std::string_view::npos)
      open_run(std::string(row.substr(first, 60)));
    csv_.clear(), table_.clear();
  }

  // ---- CSV and Markdown tables ----

  static bool header_has_loss(const std::vector<std::string>& names) {
    LogRecord probe;
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      LogRecord r;
      return set_field(r, normal(name), "1") && (!std::isnan(r.loss) || !std::isnan(r.eval_loss));
    });
  }

  bool csv_row(std::string_view row) {
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
      if (!current().train.empty()) open_run("");
      return true;
    }
    const std::vector<std::string> values = split_cells(row, separator_);
    if (values.size() != csv_.size()) {
      csv_.clear();
      return false;
    }
    record_of(csv_, values);
    return true;
  }

  bool table_row(std::string_view row) {
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
        const std::string k = normal(n);
        return k == "step" || k == "steps" || k == "epoch" || k == "global_step" || k == "iteration";
      });
      if (!header_has_loss(values) || !steps) table_.clear();
      return !table_.empty();
    }
    if (table_.size() != values.size()) return false;
    record_of(table_, values);
    return true;
  }

  void record_of(const std::vector<std::string>& names, const std::vector<std::string>& values) {
    LogRecord record;
    record.line = line_;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!set_field(record, normal(names[i]), values[i])) declare_column(normal(names[i]), values[i]);
    }
    if (!current().train.empty() && starts_over(current(), record)) open_run("");
    keep(record);
  }

  void declare_column(const std::string& name, const std::string& value) {
    if (name == "gradient_accumulation_steps" || name == "per_device_train_batch_size" ||
        name == "world_size")
      declare(name, value);
  }

  static void note_resumes(LogRun& r) {
    for (std::size_t i = 1; i < r.train.size(); ++i) {
      if (r.train[i].step < r.train[i - 1].step) r.resumed_at.push_back(i);
    }
  }

  const LogText& log_;
  std::vector<LogRun> runs_;
  std::optional<std::pair<double, double>> progress_;
  std::vector<std::string> csv_, table_;
  char separator_ = ',';
  int line_ = 0;
};

}  // namespace

std::vector<LogRun> read_logs(const LogText& log) { return LogReader(log).run(); }

bool looks_like_log(std::string_view text) {
  const LogText log{.text = text.substr(0, 200'000), .file = 0, .first_line = 1, .name = ""};
  std::size_t records = 0;
  for (const LogRun& r : read_logs(log)) records += r.train.size() + r.evals.size();
  return records >= 2 || !read_comparison_tables(log).empty();
}

}  // namespace batchwright::check
