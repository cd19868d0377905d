#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "data/text_rows.h"

namespace batchwright::data {
namespace {

// Takes records off the front of a text, counting lines; RFC 4180, with LF or CRLF and any one-byte
// delimiter.
class RecordScanner {
 public:
  RecordScanner(std::string_view text, const std::string& subject, char delimiter)
      : text_(text), subject_(subject), delimiter_(delimiter) {}

  // The line on which the last record began.
  std::int64_t record_line() const { return record_line_; }

  // False at the end of the text. Blank lines are skipped.
  bool next(std::vector<std::string>& fields) {
    skip_blank_lines();
    fields.clear();
    if (at_ == text_.size()) return false;
    record_line_ = line_;
    while (true) {
      fields.push_back(at_ < text_.size() && text_[at_] == '"' ? quoted_field() : plain_field());
      if (end_of_record()) return true;
      ++at_;  // the delimiter
    }
  }

 private:
  bool line_ends_at(std::size_t at) const {
    return text_[at] == '\n' || (text_[at] == '\r' && at + 1 < text_.size() && text_[at + 1] == '\n');
  }

  void skip_blank_lines() {
    while (at_ < text_.size() && line_ends_at(at_)) {
      at_ += text_[at_] == '\r' ? 2 : 1;
      ++line_;
    }
  }

  bool end_of_record() {
    if (at_ == text_.size()) return true;
    if (!line_ends_at(at_)) return false;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    return true;
  }

  std::string plain_field() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != delimiter_ && !line_ends_at(at_)) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted_field() {
    const std::int64_t opened = line_;
    std::string field;
    for (++at_;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        refuse_line(subject_, opened, "has a quote that is never closed",
                    "A field that begins with \" must end with one; write \"\" for a quote inside it");
      }
      const std::string_view part = text_.substr(at_, quote - at_);
      line_ += std::count(part.begin(), part.end(), '\n');
      field += part;
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] == delimiter_ || line_ends_at(at_)) return field;
      if (text_[at_] != '"') {
        refuse_line(subject_, line_, "has text after a closing quote",
                    "A field that begins with \" must end with one; write \"\" for a quote inside it");
      }
      field += '"';
      ++at_;
    }
  }

  std::string_view text_;
  const std::string& subject_;
  char delimiter_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, record_line_ = 1;
};

void check_header(const std::vector<std::string>& header, const std::string& subject, std::int64_t line) {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (std::find(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(i), header[i]) !=
        header.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse_line(subject, line, fmt::format("names column '{}' twice", header[i]));
    }
  }
}

std::optional<std::size_t> find_column(const std::vector<std::string>& header, const std::string& name) {
  const auto found = std::find(header.begin(), header.end(), name);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

std::size_t require_column(const std::vector<std::string>& header, const std::string& name,
                           const std::string& subject, std::int64_t line, std::string_view option) {
  if (const auto column = find_column(header, name)) return *column;
  const std::string hint =
      header.size() == 1 && header[0].find(';') != std::string::npos
          ? fmt::format("Its only column is '{}': columns are apart by commas, or by tabs in a .tsv",
                        header[0])
          : fmt::format("It has {}; {} names another", fmt::join(header, ", "), option);
  refuse_line(subject, line, fmt::format("has no column '{}'", name), hint);
}

}  // namespace

TextRows parse_delimited(std::string_view content, const std::string& subject, const ColumnNames& columns,
                         char delimiter) {
  RecordScanner scanner(content, subject, delimiter);
  std::vector<std::string> header, fields;
  if (!scanner.next(header)) return {};
  const std::int64_t header_line = scanner.record_line();
  check_header(header, subject, header_line);
  const std::size_t text = require_column(header, columns.text, subject, header_line, "--text-column");
  const std::size_t label = require_column(header, columns.label, subject, header_line, "--label-column");
  const std::optional<std::size_t> pair = find_column(header, columns.text_pair);

  TextRows out{.rows = {}, .has_pairs = pair.has_value()};
  while (scanner.next(fields)) {
    const std::int64_t line = scanner.record_line();
    if (fields.size() != header.size()) {
      refuse_line(subject, line,
                  fmt::format("has {} fields; the header has {}", fields.size(), header.size()),
                  "A field that holds the delimiter must stand in quotes");
    }
    if (fields[label].empty()) refuse_line(subject, line, "is a row without a label");
    out.rows.push_back({.text = std::move(fields[text]),
                        .text_pair = pair ? std::move(fields[*pair]) : std::string(),
                        .label = std::move(fields[label]),
                        .line = line});
  }
  return out;
}

}  // namespace batchwright::data
