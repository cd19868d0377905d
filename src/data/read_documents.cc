#include <fmt/format.h>

#include "base/error.h"
#include "base/strict_json.h"
#include "data/documents.h"

namespace batchwright::data {
namespace {

std::string text_of(const Json& object, const std::string& name, const std::string& place) {
  const auto found = object.find(name);
  if (found == object.end()) {
    refuse_place(place, fmt::format("has no \"{}\"", name),
                 "A row for a language model has \"prompt\" and \"completion\", or a text");
  }
  if (!found->is_string())
    refuse_place(place, fmt::format("\"{}\" is {}, not text", name, found->type_name()));
  return found->get<std::string>();
}

}  // namespace

Documents parse_documents(std::string_view content, const std::string& subject, const ColumnNames& columns) {
  Documents out;
  for (std::int64_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}:{}", subject, number);
    const Json object = parse_json_strictly(line, place);
    if (!object.is_object()) refuse_place(place, fmt::format("is {}, not an object", object.type_name()));
    Document row;
    row.line = number;
    row.has_prompt = object.contains("prompt") || object.contains("completion");
    if (!out.rows.empty() && row.has_prompt != out.rows.front().has_prompt) {
      refuse_place(place, fmt::format("has {} prompt, unlike the rows before", row.has_prompt ? "a" : "no"));
    }
    if (row.has_prompt) row.prompt = text_of(object, "prompt", place);
    row.text = text_of(object, row.has_prompt ? "completion" : columns.text, place);
    if (row.text.empty())
      refuse_place(place, row.has_prompt ? "has an empty completion" : "has an empty text");
    out.rows.push_back(std::move(row));
  }
  return out;
}

Documents parse_plain_text(std::string_view content) {
  Documents out{.rows = {}, .plain = true};
  for (std::int64_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    const std::size_t taken = end == std::string_view::npos ? content.size() : end + 1;
    out.rows.push_back(
        {.text = std::string(content.substr(0, taken)), .prompt = {}, .has_prompt = false, .line = number});
    content.remove_prefix(taken);
  }
  return out;
}

Documents read_documents(const std::filesystem::path& path, const ColumnNames& columns) {
  const std::string subject = path.string(), extension = lower_extension(path);
  const MappedFile file(path);
  const std::string_view content = checked_content(file, subject);
  const bool json = extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
  Documents documents = json ? parse_documents(content, subject, columns) : parse_plain_text(content);
  if (documents.rows.empty()) throw Error(ErrorKind::InvalidInput, subject, "has no rows");
  return documents;
}

}  // namespace batchwright::data
