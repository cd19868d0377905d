#include "base/json.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files.h"

namespace batchwright {
namespace {

constexpr int kMaxDepth = 200;

std::string short_reason(const std::string& what) {
  // nlohmann prefixes "[json.exception.parse_error.101] parse error at line 1, column 2: ".
  const auto start = what.find("parse error");
  return start == std::string::npos ? what : what.substr(start);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& subject) {
  // dump and the destructor recurse over the value, so depth is bounded here, once, for the whole program.
  const Json::parser_callback_t bounded = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) {
      throw Error(ErrorKind::InvalidInput, subject,
                  fmt::format("is nested deeper than {} levels", kMaxDepth));
    }
    return true;
  };
  // The callback makes parsing slower; only text that could nest that deeply pays for it.
  int depth = 0, deepest = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  try {
    return Json::parse(text, deepest > kMaxDepth ? bounded : nullptr);
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::InvalidInput, subject, "is not valid JSON (" + short_reason(e.what()) + ")");
  }
}

Json read_json_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path.string());
}

std::string dump_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

JsonFields::JsonFields(const Json& object, std::string subject)
    : object_(object), subject_(std::move(subject)) {
  if (!object_.is_object()) {
    throw Error(ErrorKind::InvalidInput, subject_,
                "must be a JSON object, and is " + std::string(object_.type_name()));
  }
}

const Json* JsonFields::find(std::string_view name) const {
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool JsonFields::has(std::string_view name) const { return find(name) != nullptr; }

void JsonFields::fail(std::string_view name, const std::string& message) const {
  throw Error(ErrorKind::InvalidInput, subject_, fmt::format("\"{}\" {}", name, message));
}

const Json& JsonFields::require(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) fail(name, "is missing");
  return *value;
}

std::string JsonFields::text(std::string_view name) const {
  const Json& value = require(name);
  if (!value.is_string()) fail(name, fmt::format("must be a string, and is {}", value.type_name()));
  return value.get<std::string>();
}

std::string JsonFields::text(std::string_view name, const std::string& fallback) const {
  return has(name) ? text(name) : fallback;
}

std::int64_t JsonFields::integer(std::string_view name, std::int64_t low, std::int64_t high) const {
  const Json& value = require(name);
  std::int64_t result = 0;
  if (value.is_number_unsigned()) {
    const auto raw = value.get<std::uint64_t>();
    if (raw > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(name, fmt::format("must lie between {} and {}, and is {}", low, high, raw));
    }
    result = static_cast<std::int64_t>(raw);
  } else if (value.is_number_integer()) {
    result = value.get<std::int64_t>();
  } else if (value.is_number_float() && std::abs(value.get<double>()) < 9e15 &&
             std::floor(value.get<double>()) == value.get<double>()) {
    result = static_cast<std::int64_t>(value.get<double>());
  } else {
    fail(name, fmt::format("must be a whole number, and is {}", dump_line(value).substr(0, 60)));
  }
  if (result < low || result > high) {
    fail(name, fmt::format("must lie between {} and {}, and is {}", low, high, result));
  }
  return result;
}

std::int64_t JsonFields::integer(std::string_view name, std::int64_t low, std::int64_t high,
                                 std::int64_t fallback) const {
  return has(name) ? integer(name, low, high) : fallback;
}

double JsonFields::number(std::string_view name, double low, double high) const {
  const Json& value = require(name);
  if (!value.is_number())
    fail(name, fmt::format("must be a number, and is {}", dump_line(value).substr(0, 60)));
  const double result = value.get<double>();
  if (!(result >= low && result <= high)) {
    fail(name, fmt::format("must lie between {} and {}, and is {}", low, high, result));
  }
  return result;
}

double JsonFields::number(std::string_view name, double low, double high, double fallback) const {
  return has(name) ? number(name, low, high) : fallback;
}

bool JsonFields::boolean(std::string_view name, bool fallback) const {
  const Json* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(name, fmt::format("must be true or false, and is {}", value->type_name()));
  return value->get<bool>();
}

std::vector<std::string> JsonFields::texts(std::string_view name) const {
  const Json* value = find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(name, fmt::format("must be a list of strings, and is {}", value->type_name()));
  std::vector<std::string> result;
  for (const Json& item : *value) {
    if (!item.is_string()) fail(name, "must hold strings only");
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::optional<std::int64_t> JsonFields::maybe_integer(std::string_view name, std::int64_t low,
                                                      std::int64_t high) const {
  if (!has(name)) return std::nullopt;
  return integer(name, low, high);
}

std::optional<double> JsonFields::maybe_number(std::string_view name, double low, double high) const {
  if (!has(name)) return std::nullopt;
  return number(name, low, high);
}

std::map<std::string, double> JsonFields::numbers(std::string_view name, double low, double high) const {
  std::map<std::string, double> result;
  const Json* object = find(name);
  if (object == nullptr) return result;
  const JsonFields named(*object, fmt::format("{}: {}", subject_, name));
  for (const auto& [key, value] : object->items()) {
    if (!value.is_null()) result[key] = named.number(key, low, high);
  }
  return result;
}

void JsonFields::reject_unknown(const std::vector<std::string_view>& known) const {
  for (const auto& [name, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = nearest_choice(name, known);
    throw Error(ErrorKind::InvalidInput, subject_, fmt::format("has an unknown field \"{}\"", name),
                near.empty() ? "" : fmt::format("Did you mean \"{}\"?", near));
  }
}

std::string nearest_choice(std::string_view word, const std::vector<std::string_view>& choices) {
  if (word.size() > 64) return "";
  std::size_t best = word.size() / 3 + 2;  // further away than this is another word, not a slip
  std::string nearest;
  for (const std::string_view choice : choices) {
    std::vector<std::size_t> row(choice.size() + 1);
    for (std::size_t j = 0; j <= choice.size(); ++j) row[j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= choice.size(); ++j) {
        const std::size_t substituted = diagonal + (word[i - 1] == choice[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best) {
      best = row.back();
      nearest = choice;
    }
  }
  return nearest;
}

}  // namespace batchwright
