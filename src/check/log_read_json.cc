// Logs that are JSON documents: trainer_state.json, lists of records, columns, several runs under their
// names.
#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "check/log_collect.h"
#include "check/log_line.h"

namespace batchwright::check {
namespace {

class JsonReader {
 public:
  explicit JsonReader(LogCollector& log) : log_(log) {}

  bool document(std::string_view text) {
    Json root;
    try {
      root = parse_json(text, log_.name());
    } catch (const Error&) {
      return false;
    }
    log_.open_run("", 0);
    value_of(root, "", 0);
    return true;
  }

 private:
  void value_of(const Json& value, const std::string& path, int depth) {
    if (depth > 20) return;
    if (value.is_array()) return array_of(value, path, depth);
    if (!value.is_object()) return;
    if (columns(value, path)) return;
    std::set<std::string> own;
    const bool has_history = value.contains("log_history");
    const bool opens = !path.empty() && holds_records(value);
    if (opens) log_.open_run(path, 0);
    for (const auto& [key, item] : value.items()) {
      if (item.is_object() || item.is_array()) continue;
      declare(key, item);
    }
    for (const auto& [key, item] : value.items()) {
      if (item.is_object() || item.is_array())
        value_of(item, has_history || key == "records" || key == "log" ? path : join(path, key), depth + 1);
    }
  }

  static std::string join(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }

  static bool is_record(const Json& item) {
    if (!item.is_object()) return false;
    LogRecord probe;
    for (const auto& [key, value] : item.items()) {
      if (value.is_number() || value.is_string()) set_field(probe, normal_column(key), text_of(value));
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

  static std::string text_of(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
  }

  void array_of(const Json& array, const std::string& path, int depth) {
    const bool records = std::any_of(array.begin(), array.end(), is_record);
    if (!records) {
      std::size_t index = 0;
      for (const Json& item : array) {
        if (index > 200) break;
        value_of(item,
                 join(path, item.is_object() && item.contains("name") && item["name"].is_string()
                                ? item["name"].get<std::string>()
                                : std::to_string(index)),
                 depth + 1);
        ++index;
      }
      return;
    }
    const bool history = path.empty() || path == "log_history";
    if (!history && !log_.current().train.empty()) log_.open_run(path, 0);
    if (!history && log_.current().name == log_.name()) log_.current().name = log_.name() + ": " + path;
    for (const Json& item : array) {
      if (!item.is_object()) continue;
      LogRecord record;
      for (const auto& [key, value] : item.items()) {
        if (value.is_number() || value.is_string()) set_field(record, normal_column(key), text_of(value));
      }
      log_.keep(record);
    }
  }

  // {"step": [...], "loss": [...]}
  bool columns(const Json& object, const std::string& path) {
    const Json* losses = nullptr;
    for (const auto& [key, value] : object.items()) {
      LogRecord probe;
      if (value.is_array() && value.size() >= 2 && value[0].is_number() &&
          set_field(probe, normal_column(key), "1") &&
          !(std::isnan(probe.loss) && std::isnan(probe.eval_loss)))
        losses = &value;
    }
    if (losses == nullptr) return false;
    log_.open_run(path, 0);
    for (const auto& [key, value] : object.items()) {
      if (!value.is_array() && !value.is_object()) declare(key, value);
    }
    for (std::size_t i = 0; i < losses->size(); ++i) {
      LogRecord record;
      for (const auto& [key, value] : object.items()) {
        if (value.is_array() && i < value.size() && value[i].is_number())
          set_field(record, normal_column(key), value[i].dump());
      }
      log_.keep(record);
    }
    return true;
  }

  void declare(const std::string& key, const Json& value) {
    if (value.is_string() || value.is_number()) log_.declare(normal_column(key), text_of(value));
  }

  LogCollector& log_;
};

}  // namespace

bool read_json_log(std::string_view text, LogCollector& log) { return JsonReader(log).document(text); }

}  // namespace batchwright::check
