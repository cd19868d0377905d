#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/text_rows.h"

namespace batchwright::data {

// A text for a language model: the loss is over all of it, or, with a prompt, over the completion alone.
struct Document {
  std::string text;    // the completion, when there is a prompt
  std::string prompt;  // meaningful when has_prompt
  bool has_prompt = false;
  std::int64_t line = 0;  // 1-based
};

struct Documents {
  std::vector<Document> rows;
  bool plain = false;  // lines of a plain text, each with its line break
};

// Reads JSON lines (.jsonl, .ndjson, .json) of {"prompt", "completion"} or of {"text"} (under the column's
// name), or plain text (any other ending), every line with its line break, as Transformers' run_clm reads it.
// Throws NotFound or InvalidInput, with "path:line".
Documents read_documents(const std::filesystem::path& path, const ColumnNames& columns);
Documents parse_documents(std::string_view content, const std::string& subject, const ColumnNames& columns);
Documents parse_plain_text(std::string_view content);

}  // namespace batchwright::data
