#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "data/labels.h"

namespace batchwright::data {

// A sentence, one tag a word.
struct TaggedRow {
  std::vector<std::string> words, tags;
  std::int64_t line = 0;  // 1-based line of its first word
};

// Reads CoNLL columns: one word a line, its tag in the last column, columns apart by spaces or tabs and as
// many in every line; a blank line ends a sentence. Lines that start with -DOCSTART- are skipped, and so are
// comments: lines that start a sentence with "# " and do not end in a tag. Throws NotFound or InvalidInput,
// with "path:line".
std::vector<TaggedRow> read_conll(const std::filesystem::path& path);
std::vector<TaggedRow> parse_conll(std::string_view content, const std::string& subject);

// "O", or B, I, E, S, L or U, a dash and a type.
bool is_tag(std::string_view text);

// The classes of tags: the model's (see map_labels) when the rows use them, else the tags in the order of
// their bytes. class_of_rows has one class a word, the sentences one after the other. Throws InvalidInput
// naming `subject`:line.
LabelMap map_tags(const std::vector<TaggedRow>& rows, const std::vector<std::string>& model_names,
                  const std::string& subject);

}  // namespace batchwright::data
