#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "data/task.h"

namespace batchwright::data {

// A tokenised data set on disk, mapped read-only: what `prepare` writes once and engine and tuner read many
// times. A row is what the model sees as one example: a text, a sentence, one window of a question's context,
// or one block of text.
//
// Layout (little endian): 8 bytes "BWTOKENS", u32 format version, u32 length of a JSON header, the header,
// then arrays, each starting at a multiple of 64 bytes. Every task has
//   offsets u64[rows + 1], ids i32[tokens], type_ids u8[tokens]
// and then, sequence-classification:
//   labels i32[rows]
// token-classification and causal-lm:
//   token_labels i32[tokens], of each token; -100 (Transformers' ignore_index) where it has none. A causal
//   language model's labels are not shifted yet: a row's label i is predicted at token i - 1
// question-answering:
//   spans i32[rows * 2], first and last token of the answer in this window; 0 0: not in it
//   characters i32[tokens * 2], where the token lies in the context, in bytes [begin, end); -1 -1 outside it
//   row_questions u32[rows], rising; strings u64[strings + 1], offsets into text; text u8[text_bytes], UTF-8
//   questions u32[questions * 4]: the strings' numbers of its id, its context, its first answer, and how many
//   answers follow one another there (none: it has no answer)
// The header holds task, rows, tokens, label_names, max_length, truncated_rows, skipped_rows, source and
// tokenizer hashes and the byte offset of every array; for question-answering also questions, strings and
// text_bytes.
class TokenFile {
 public:
  static constexpr std::uint32_t kVersion = 2;  // of the file, and of what prepare.py does with a text
  static constexpr std::int32_t kNoLabel = -100;

  struct Span {
    std::int32_t first = 0, last = 0;
  };

  // Checks every offset, length and value (ids >= 0, labels within label_names, spans within their rows,
  // strings within the text, offsets rising); throws InvalidInput or NotFound naming the path.
  static TokenFile open(const std::filesystem::path& path);

  Task task() const { return task_; }
  std::uint32_t rows() const { return static_cast<std::uint32_t>(offsets_.size() - 1); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int32_t length(std::uint32_t row) const;  // tokens of the row, special tokens included
  std::span<const std::int32_t> ids(std::uint32_t row) const { return part(ids_, row); }
  std::span<const std::uint8_t> type_ids(std::uint32_t row) const { return part(type_ids_, row); }

  std::int32_t label(std::uint32_t row) const { return labels_[row]; }
  std::span<const std::int32_t> token_labels(std::uint32_t row) const { return part(token_labels_, row); }
  // How many terms the row adds to the sum of losses: one, its labelled tokens (after the causal shift), or a
  // span's two ends. Their sum over an effective batch is what the loss is divided by.
  std::int64_t targets(std::uint32_t row) const;

  Span span(std::uint32_t row) const { return {spans_[2 * row], spans_[2 * row + 1]}; }
  Span characters(std::uint32_t row, std::int32_t token) const;
  std::uint32_t questions() const { return static_cast<std::uint32_t>(questions_.size() / 4); }
  std::uint32_t question(std::uint32_t row) const { return row_questions_[row]; }
  std::string_view question_id(std::uint32_t question) const { return string(questions_[4 * question]); }
  std::string_view context(std::uint32_t question) const { return string(questions_[4 * question + 1]); }
  std::vector<std::string_view> answers(std::uint32_t question) const;

  const std::vector<std::string>& label_names() const { return label_names_; }
  std::int32_t max_length() const { return max_length_; }
  std::uint32_t truncated_rows() const { return truncated_rows_; }
  std::uint32_t skipped_rows() const { return skipped_rows_; }  // of the data: no label was left in them
  std::int32_t largest_id() const { return largest_id_; }
  const std::string& content_id() const { return content_id_; }  // hash of what it was made from

 private:
  struct Arrays;
  explicit TokenFile(MappedFile file) : file_(std::move(file)) {}

  template <typename T>
  std::span<const T> part(std::span<const T> whole, std::uint32_t row) const {
    return whole.subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
  }
  std::string_view string(std::uint32_t number) const;
  void read_labels(const Arrays& arrays);
  void read_token_labels(const Arrays& arrays);
  void read_questions(const Arrays& arrays);
  void check_spans(const std::string& subject) const;

  MappedFile file_;
  Task task_ = Task::SequenceClassification;
  std::span<const std::uint64_t> offsets_, strings_;
  std::span<const std::int32_t> ids_, labels_, token_labels_, spans_, characters_;
  std::span<const std::uint8_t> type_ids_, text_;
  std::span<const std::uint32_t> row_questions_, questions_;
  std::vector<std::string> label_names_;
  std::string content_id_;
  std::int32_t max_length_ = 0;
  std::int32_t largest_id_ = 0;
  std::uint32_t truncated_rows_ = 0, skipped_rows_ = 0;
};

}  // namespace batchwright::data
