#include "data/labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::data {
namespace {

// More classes than this, and more than half as many as rows: the column is a text or an identifier.
constexpr std::size_t kManyClasses = 100;

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

[[noreturn]] void outside(const TextRow& row, const std::string& subject, const std::string& classes,
                          std::string hint = "") {
  throw Error(ErrorKind::InvalidInput, fmt::format("{}:{}", subject, row.line),
              fmt::format("label '{}' is outside the classes {}", row.label, classes), std::move(hint));
}

// Transformers writes these when nobody named the classes.
bool are_default_names(const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] != fmt::format("LABEL_{}", i)) return false;
  }
  return true;
}

LabelMap map_numbers(const TextRows& rows, const std::vector<std::int64_t>& numbers,
                     const std::vector<std::string>& model_names, const std::string& subject) {
  LabelMap map;
  const auto model_classes = static_cast<std::int64_t>(model_names.size());
  const std::int64_t largest = *std::max_element(numbers.begin(), numbers.end());
  const bool model_decides =
      model_classes > 0 && (largest < model_classes || !are_default_names(model_names));
  std::set<std::int64_t> distinct(numbers.begin(), numbers.end());
  // Without the model's word, the classes are the unbroken run that starts at 0, or at 1 when no row has 0.
  const std::int64_t first = model_decides || distinct.contains(0) ? 0 : 1;
  std::int64_t end = first;
  if (model_decides) {
    end = model_classes;
  } else {
    while (distinct.contains(end)) ++end;
  }
  map.class_of_rows.reserve(numbers.size());
  for (std::size_t row = 0; row < numbers.size(); ++row) {
    if (numbers[row] < first || numbers[row] >= end) {
      outside(rows.rows[row], subject,
              model_decides ? fmt::format("of the model, 0 to {} ({})", end - 1, some_of(model_names))
              : end > first ? fmt::format("{} to {} of the other rows", first, end - 1)
                            : "0 and up",
              model_decides ? "" : "Whole-number labels run without a gap from 0 or 1");
    }
    map.class_of_rows.push_back(static_cast<std::int32_t>(numbers[row] - first));
  }
  if (model_decides) {
    map.names = model_names;
  } else {
    for (std::int64_t number = first; number < end; ++number) map.names.push_back(std::to_string(number));
  }
  return map;
}

LabelMap map_names(const TextRows& rows, const std::vector<std::string>& model_names,
                   const std::string& subject) {
  std::map<std::string_view, std::int32_t> classes;
  for (std::size_t i = 0; i < model_names.size(); ++i) classes.emplace(model_names[i], i);
  const auto known = [&](const TextRow& row) { return classes.contains(row.label); };
  LabelMap map{.names = model_names, .class_of_rows = {}};
  if (std::none_of(rows.rows.begin(), rows.rows.end(), known)) {
    classes.clear();
    map.names.clear();
    for (const TextRow& row : rows.rows) classes.emplace(row.label, 0);
    for (auto& [name, index] : classes) {
      index = static_cast<std::int32_t>(map.names.size());
      map.names.emplace_back(name);
    }
  }
  map.class_of_rows.reserve(rows.rows.size());
  for (const TextRow& row : rows.rows) {
    const auto found = classes.find(row.label);
    if (found == classes.end()) outside(row, subject, fmt::format("of the model ({})", some_of(model_names)));
    map.class_of_rows.push_back(found->second);
  }
  return map;
}

void check_class_count(const LabelMap& map, const std::string& subject) {
  const std::size_t classes = map.names.size(), rows = map.class_of_rows.size();
  if (classes < 2) {
    throw Error(ErrorKind::InvalidInput, subject,
                fmt::format("has one label only, '{}'; classification needs at least two", map.names.at(0)));
  }
  if (classes > kManyClasses && 2 * classes > rows) {
    throw Error(ErrorKind::InvalidInput, subject,
                fmt::format("has {} different labels in {} rows: that is not a label column", classes, rows),
                "--label-column names another");
  }
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 8;
  const std::vector<std::string> shown(
      names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShown)));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > kShown ? ", ..." : "");
}

LabelMap map_labels(const TextRows& rows, const std::vector<std::string>& model_names,
                    const std::string& subject) {
  std::vector<std::int64_t> numbers;
  for (const TextRow& row : rows.rows) {
    const auto number = whole_number(row.label);
    const bool first_row = &row == rows.rows.data();
    if (!first_row && number.has_value() == numbers.empty()) {
      throw Error(ErrorKind::InvalidInput, fmt::format("{}:{}", subject, row.line),
                  fmt::format("label '{}' is {}, unlike the rows before", row.label,
                              number ? "a whole number" : "a name"));
    }
    if (number) numbers.push_back(*number);
  }
  LabelMap map = numbers.empty() ? map_names(rows, model_names, subject)
                                 : map_numbers(rows, numbers, model_names, subject);
  check_class_count(map, subject);
  return map;
}

std::vector<std::string> model_label_names(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "config.json";
  if (!std::filesystem::exists(path)) return {};
  const Json config = read_json_file(path);
  if (!config.is_object()) return {};
  const auto id2label = config.find("id2label");
  if (id2label == config.end() || !id2label->is_object()) return {};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < id2label->size(); ++i) {
    const auto entry = id2label->find(std::to_string(i));
    if (entry == id2label->end() || !entry->is_string()) return {};
    names.push_back(entry->get<std::string>());
  }
  return names.size() < 2 ? std::vector<std::string>{} : names;
}

}  // namespace batchwright::data
