#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"

namespace batchwright::data {

// A tokenised data set on disk, mapped read-only: what `prepare` writes once and engine and tuner read many
// times.
//
// Layout (little endian): 8 bytes "BWTOKENS", u32 format version, u32 length of a JSON header, the header,
// then arrays, each starting at a multiple of 64 bytes: offsets u64[rows + 1], ids i32[tokens], type_ids
// u8[tokens], labels i32[rows]. The header holds rows, tokens, label_names, max_length, truncated_rows,
// source and tokenizer hashes and the byte offset of every array.
class TokenFile {
 public:
  // Checks every offset, length and value (ids >= 0, labels within label_names, offsets rising); throws
  // InvalidInput or NotFound naming the path.
  static TokenFile open(const std::filesystem::path& path);

  std::uint32_t rows() const { return static_cast<std::uint32_t>(labels_.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int32_t length(std::uint32_t row) const;  // tokens of the row, special tokens included
  std::span<const std::int32_t> ids(std::uint32_t row) const;
  std::span<const std::uint8_t> type_ids(std::uint32_t row) const;
  std::int32_t label(std::uint32_t row) const { return labels_[row]; }
  const std::vector<std::string>& label_names() const { return label_names_; }
  std::int32_t max_length() const { return max_length_; }
  std::uint32_t truncated_rows() const { return truncated_rows_; }
  std::int32_t largest_id() const { return largest_id_; }
  const std::string& content_id() const { return content_id_; }  // hash of what it was made from

 private:
  explicit TokenFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::span<const std::uint64_t> offsets_;
  std::span<const std::int32_t> ids_;
  std::span<const std::uint8_t> type_ids_;
  std::span<const std::int32_t> labels_;
  std::vector<std::string> label_names_;
  std::string content_id_;
  std::int32_t max_length_ = 0;
  std::int32_t largest_id_ = 0;
  std::uint32_t truncated_rows_ = 0;
};

}  // namespace batchwright::data
