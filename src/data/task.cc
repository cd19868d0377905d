#include "data/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"

namespace batchwright::data {
namespace {

constexpr std::array<std::pair<std::string_view, Task>, 7> kNames = {
    {{"sequence-classification", Task::SequenceClassification},
     {"token-classification", Task::TokenClassification},
     {"question-answering", Task::QuestionAnswering},
     {"causal-lm", Task::CausalLm},
     {"sequence", Task::SequenceClassification},
     {"token", Task::TokenClassification},
     {"qa", Task::QuestionAnswering}}};

bool is_one_of(const std::string& extension, std::initializer_list<std::string_view> known) {
  return std::find(known.begin(), known.end(), extension) != known.end();
}

// Null for what is no JSON, or hostile: the reader of the file names the fault.
Json parsed_or_null(std::string_view text) {
  try {
    return parse_json(text, "");
  } catch (const Error&) {
    return nullptr;
  }
}

// Of a file whose first line may be a whole JSON document, or the beginning of one.
Task deduce_from_json(std::string_view content, const ColumnNames& columns) {
  content.remove_prefix(std::min(content.find_first_not_of(" \t\r\n"), content.size()));
  Json row = parsed_or_null(content.substr(0, content.find('\n')));
  if (row.is_null()) row = parsed_or_null(content);  // a document over several lines?
  if (!row.is_object()) return Task::SequenceClassification;
  const auto data = row.find("data");
  if (data != row.end() && !row.contains(columns.text)) return Task::QuestionAnswering;
  const bool prompts = row.contains("prompt") && row.contains("completion") && !row.contains(columns.text);
  const bool only_text = row.size() == 1 && row.contains(columns.text);
  return prompts || only_text ? Task::CausalLm : Task::SequenceClassification;
}

}  // namespace

Task parse_task(std::string_view text, const std::string& subject) {
  for (const auto& [name, task] : kNames) {
    if (name == text) return task;
  }
  throw Error(ErrorKind::Usage, subject, fmt::format("'{}' is not known", text),
              "Choose one of sequence, token, qa, causal-lm");
}

std::string task_name(Task task) {
  for (const auto& [name, candidate] : kNames) {
    if (candidate == task) return std::string(name);
  }
  return "";
}

Task deduce_task(const std::filesystem::path& data, const ColumnNames& columns) {
  const std::string extension = lower_extension(data);
  if (is_one_of(extension, {".csv", ".tsv", ".tab"})) return Task::SequenceClassification;
  if (is_one_of(extension, {".conll", ".bio", ".iob", ".iob2"})) return Task::TokenClassification;
  const MappedFile file(data);
  if (extension == ".txt") return Task::CausalLm;
  if (is_one_of(extension, {".jsonl", ".ndjson", ".json"})) {
    return deduce_from_json(content_of(file), columns);
  }
  throw Error(ErrorKind::Unsupported, data.string(),
              extension.empty() ? "has no extension that says what it is"
                                : fmt::format("has extension {}, which is not a data file's", extension),
              "Data files end in .jsonl, .csv, .tsv, .conll, .json or .txt; --task says what another holds");
}

}  // namespace batchwright::data
