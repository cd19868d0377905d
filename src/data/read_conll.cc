#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "data/tagged_rows.h"
#include "data/text_rows.h"

namespace batchwright::data {
namespace {

std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> columns;
  constexpr std::string_view kBlanks = " \t\r";
  std::size_t begin = 0;
  while ((begin = line.find_first_not_of(kBlanks, begin)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    columns.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return columns;
}

}  // namespace

bool is_tag(std::string_view text) {
  if (text == "O") return true;
  return text.size() > 2 && text[1] == '-' &&
         std::string_view("BIESLU").find(text[0]) != std::string_view::npos;
}

std::vector<TaggedRow> parse_conll(std::string_view content, const std::string& subject) {
  std::vector<TaggedRow> rows;
  TaggedRow row;
  std::size_t width = 0;  // columns of the lines so far
  const auto end_sentence = [&] {
    if (!row.words.empty()) rows.push_back(std::move(row));
    row = {};
  };
  for (std::int64_t number = 1; !content.empty(); ++number) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    const auto columns = columns_of(line);
    if (columns.empty()) {
      end_sentence();
      continue;
    }
    if (line.starts_with("-DOCSTART-")) continue;
    if (row.words.empty() && line.starts_with("# ") && !is_tag(columns.back())) continue;
    if (width == 0) width = columns.size();
    if (columns.size() < 2) {
      refuse_line(subject, number, fmt::format("has the word '{}' and no tag", columns[0]),
                  "A line has a word and, in its last column, a tag; a blank line ends a sentence");
    }
    if (columns.size() != width) {
      refuse_line(subject, number,
                  fmt::format("has {} columns; the lines before have {}", columns.size(), width));
    }
    if (!is_tag(columns.back())) {
      refuse_line(subject, number, fmt::format("has the tag '{}'", columns.back()),
                  "Tags are O, or B-, I-, E-, S-, L- or U- and a type, in the last column");
    }
    if (row.words.empty()) row.line = number;
    row.words.emplace_back(columns.front());
    row.tags.emplace_back(columns.back());
  }
  end_sentence();
  return rows;
}

std::vector<TaggedRow> read_conll(const std::filesystem::path& path) {
  const std::string subject = path.string();
  const MappedFile file(path);
  auto rows = parse_conll(checked_content(file, subject), subject);
  if (rows.empty()) throw Error(ErrorKind::InvalidInput, subject, "has no words");
  return rows;
}

LabelMap map_tags(const std::vector<TaggedRow>& rows, const std::vector<std::string>& model_names,
                  const std::string& subject) {
  std::map<std::string_view, std::int32_t> classes;
  for (std::size_t i = 0; i < model_names.size(); ++i)
    classes.emplace(model_names[i], static_cast<std::int32_t>(i));
  const bool known = std::any_of(rows.begin(), rows.end(), [&](const TaggedRow& row) {
    return std::any_of(row.tags.begin(), row.tags.end(),
                       [&](const std::string& tag) { return tag != "O" && classes.contains(tag); });
  });
  LabelMap map;
  if (known) {
    map.names = model_names;
  } else {
    classes.clear();
    for (const TaggedRow& row : rows) {
      for (const std::string& tag : row.tags) classes.emplace(tag, 0);
    }
    for (auto& [name, index] : classes) {
      index = static_cast<std::int32_t>(map.names.size());
      map.names.emplace_back(name);
    }
  }
  for (const TaggedRow& row : rows) {
    for (std::size_t i = 0; i < row.tags.size(); ++i) {
      const auto found = classes.find(row.tags[i]);
      if (found == classes.end()) {
        refuse_line(subject, row.line + static_cast<std::int64_t>(i),
                    fmt::format("tag '{}' is not one of the model's ({})", row.tags[i], some_of(map.names)));
      }
      map.class_of_rows.push_back(found->second);
    }
  }
  if (map.names.size() < 2) {
    throw Error(
        ErrorKind::InvalidInput, subject,
        fmt::format("has one tag only, '{}'; token classification needs at least two", map.names.at(0)));
  }
  return map;
}

}  // namespace batchwright::data
