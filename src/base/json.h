#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright {

// Keeps the order in which fields were written, so that documents read as their author meant them.
using Json = nlohmann::ordered_json;

// Parses one JSON document. `subject` names the source in errors (a path, "line 3 of x.jsonl").
// Throws InvalidInput on malformed text, on nesting deeper than 200 and on trailing text.
Json parse_json(std::string_view text, const std::string& subject);

// Reads and parses a file of at most `max_bytes`. Throws NotFound or InvalidInput naming the path.
Json read_json_file(const std::filesystem::path& path, std::int64_t max_bytes = 256ll << 20);

// One line, no spaces; invalid UTF-8 in strings is replaced, never thrown on.
std::string dump_line(const Json& value);

// JSON's null for a value that is not known.
template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

// Ends of the range for fields that may hold any number.
inline constexpr std::int64_t kMostInteger = std::numeric_limits<std::int64_t>::max();
inline constexpr double kMostNumber = std::numeric_limits<double>::max();

// Typed access to the fields of one JSON object; every error names `subject` and the field.
// A field that is absent or null yields the fallback or an empty optional; one of a wrong type or outside the
// given range throws InvalidInput.
class JsonFields {
 public:
  JsonFields(const Json& object, std::string subject);

  bool has(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, const std::string& fallback) const;
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  std::int64_t integer(std::string_view name, std::int64_t low, std::int64_t high,
                       std::int64_t fallback) const;
  double number(std::string_view name, double low, double high) const;
  double number(std::string_view name, double low, double high, double fallback) const;
  bool boolean(std::string_view name, bool fallback) const;
  std::vector<std::string> texts(std::string_view name) const;  // absent: empty
  std::optional<std::int64_t> maybe_integer(std::string_view name, std::int64_t low, std::int64_t high) const;
  std::optional<double> maybe_number(std::string_view name, double low, double high) const;
  // The field, an object of numbers in the range; those that are null are left out. Absent: empty.
  std::map<std::string, double> numbers(std::string_view name, double low, double high) const;
  const Json* find(std::string_view name) const;  // nullptr when absent or null

  // Throws InvalidInput naming the first field that is not in `known`, with the nearest known name as a hint.
  void reject_unknown(const std::vector<std::string_view>& known) const;

 private:
  const Json& require(std::string_view name) const;
  [[noreturn]] void fail(std::string_view name, const std::string& message) const;

  const Json& object_;
  std::string subject_;
};

// The entry of `choices` nearest to `word` by edit distance, or "" when none is close.
std::string nearest_choice(std::string_view word, const std::vector<std::string_view>& choices);

}  // namespace batchwright
