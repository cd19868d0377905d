#include "data/text_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/error.h"
#include "base/files.h"

namespace batchwright::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

void require_utf8(std::string_view content, const std::string& subject) {
  const std::size_t bad = invalid_utf8_at(content);
  if (bad == std::string_view::npos) return;
  const auto line = 1 + std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
  refuse_line(subject, line,
              fmt::format("is not valid UTF-8 (byte 0x{:02x})", static_cast<unsigned char>(content[bad])),
              "Convert the file, for example with iconv -f latin1 -t utf-8");
}

}  // namespace

void refuse_place(const std::string& place, std::string message, std::string hint) {
  throw Error(ErrorKind::InvalidInput, place, std::move(message), std::move(hint));
}

void refuse_line(const std::string& subject, std::int64_t line, std::string message, std::string hint) {
  refuse_place(fmt::format("{}:{}", subject, line), std::move(message), std::move(hint));
}

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

std::string_view content_of(const MappedFile& file) {
  std::string_view content(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (content.starts_with(kByteOrderMark)) content.remove_prefix(kByteOrderMark.size());
  return content;
}

std::string_view checked_content(const MappedFile& file, const std::string& subject) {
  const std::string_view content = content_of(file);
  if (content.empty()) throw Error(ErrorKind::InvalidInput, subject, "is empty");
  require_utf8(content, subject);
  return content;
}

TextRows read_text_rows(const std::filesystem::path& path, const ColumnNames& columns) {
  const std::string subject = path.string(), extension = lower_extension(path);
  const bool json = extension == ".jsonl" || extension == ".ndjson" || extension == ".json";
  const bool tabs = extension == ".tsv" || extension == ".tab";
  const MappedFile file(path);
  if (!json && !tabs && extension != ".csv") {
    throw Error(ErrorKind::Unsupported, subject,
                extension.empty() ? "has no extension that says what it is"
                                  : fmt::format("has extension {}, which is not a data file's", extension),
                "Data files end in .jsonl, .csv or .tsv");
  }
  const std::string_view content = checked_content(file, subject);
  TextRows rows = json ? parse_json_lines(content, subject, columns)
                       : parse_delimited(content, subject, columns, tabs ? '\t' : ',');
  if (rows.rows.empty()) throw Error(ErrorKind::InvalidInput, subject, "has no rows");
  return rows;
}

}  // namespace batchwright::data
