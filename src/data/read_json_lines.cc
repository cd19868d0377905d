#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "base/strict_json.h"
#include "data/text_rows.h"

namespace batchwright::data {
namespace {

std::vector<std::string_view> field_names(const Json& object) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

std::string missing_hint(const Json& object, const std::string& wanted, std::string_view option) {
  const std::vector<std::string_view> names = field_names(object);
  if (names.empty()) return "";
  const std::string near = nearest_choice(wanted, names);
  return near.empty() ? fmt::format("It has {}; {} names another, and docs/data.md has the formats",
                                    fmt::join(names, ", "), option)
                      : fmt::format("It has '{}'; {} names another", near, option);
}

std::string text_field(const Json& object, const std::string& name, const std::string& place,
                       std::string_view option) {
  const auto found = object.find(name);
  if (found == object.end()) {
    refuse_place(place, fmt::format("has no \"{}\"", name), missing_hint(object, name, option));
  }
  if (!found->is_string())
    refuse_place(place, fmt::format("\"{}\" is {}, not text", name, found->type_name()));
  return found->get<std::string>();
}

std::string label_field(const Json& object, const std::string& name, const std::string& place) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    refuse_place(place, fmt::format("is a row without a label (\"{}\")", name),
                 found == object.end() ? missing_hint(object, name, "--label-column") : "");
  }
  if (found->is_boolean() || found->is_number_integer()) return found->dump();
  if (!found->is_string()) {
    refuse_place(place, fmt::format("label {} is neither a name nor a whole number", found->dump()));
  }
  if (found->get_ref<const std::string&>().empty()) refuse_place(place, "is a row with an empty label");
  return found->get<std::string>();
}

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }

}  // namespace

TextRows parse_json_lines(std::string_view content, const std::string& subject, const ColumnNames& columns) {
  TextRows out;
  std::int64_t number = 0;
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    ++number;
    if (is_blank(line)) continue;
    const std::string place = fmt::format("{}:{}", subject, number);
    const Json object = parse_json_strictly(line, place);
    if (!object.is_object()) {
      refuse_place(place,
                   fmt::format("is {}, not an object with \"{}\" and \"{}\"", object.type_name(),
                               columns.text, columns.label),
                   "A data file has one JSON object a line");
    }
    TextRow row;
    row.line = number;
    row.text = text_field(object, columns.text, place, "--text-column");
    const bool has_pair = object.contains(columns.text_pair);
    if (out.rows.empty()) out.has_pairs = has_pair;
    if (has_pair != out.has_pairs) {
      refuse_place(place, fmt::format("{} \"{}\", unlike the rows before", has_pair ? "has" : "has no",
                                      columns.text_pair));
    }
    if (has_pair) row.text_pair = text_field(object, columns.text_pair, place, "--text-pair-column");
    row.label = label_field(object, columns.label, place);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace batchwright::data
