#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"

namespace batchwright::data {

// The columns of a text classification data file.
struct ColumnNames {
  std::string text = "text";
  std::string text_pair = "text_pair";  // read when the file has it
  std::string label = "label";
};

// One example as the person wrote it.
struct TextRow {
  std::string text;
  std::string text_pair;  // meaningful when TextRows::has_pairs
  std::string label;      // a class's name, or a whole number in decimal
  std::int64_t line = 0;  // 1-based line of the file where the row begins
};

struct TextRows {
  std::vector<TextRow> rows;
  bool has_pairs = false;
};

// Throws InvalidInput for a fault of a data file, at "file:line" or wherever in it.
[[noreturn]] void refuse_place(const std::string& place, std::string message, std::string hint = "");
[[noreturn]] void refuse_line(const std::string& subject, std::int64_t line, std::string message,
                              std::string hint = "");

// ".jsonl": the ending of a file's name in lower case.
std::string lower_extension(const std::filesystem::path& path);

// A mapped file's text without a byte order mark.
std::string_view content_of(const MappedFile& file);

// The same, checked: throws InvalidInput for an empty file and, with the line, for what is not UTF-8.
std::string_view checked_content(const MappedFile& file, const std::string& subject);

// Reads JSON lines (.jsonl, .ndjson, .json), CSV (.csv) or TSV (.tsv, .tab), UTF-8, with or without a byte
// order mark, lines ending in LF or CRLF; blank lines are skipped. CSV and TSV start with a header and quote
// as RFC 4180 says: a field that begins with " ends with ", and "" inside it is one quote; it may hold line
// breaks. Throws NotFound, Unsupported (another kind of file) or InvalidInput; the subject of the last is
// "path:line".
TextRows read_text_rows(const std::filesystem::path& path, const ColumnNames& columns);

// The same from memory; `subject` is the path that errors name.
TextRows parse_json_lines(std::string_view content, const std::string& subject, const ColumnNames& columns);
TextRows parse_delimited(std::string_view content, const std::string& subject, const ColumnNames& columns,
                         char delimiter);

}  // namespace batchwright::data
