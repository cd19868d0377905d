#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string_view>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::data {
namespace {

static_assert(std::endian::native == std::endian::little, "the token file is mapped as it lies on disk");

constexpr std::string_view kMagic = "BWTOKENS";
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::size_t kPreambleBytes = 16;  // magic, version, header length
constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kMaxHeaderBytes = 64u << 20;

[[noreturn]] void fail(const std::string& subject, const std::string& message) {
  throw Error(ErrorKind::InvalidInput, subject, message,
              "Delete it, and it is made again from the data file");
}

std::uint32_t read_u32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

Json read_header(std::span<const std::byte> bytes, const std::string& subject, std::size_t& header_end) {
  if (bytes.size() < kPreambleBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    fail(subject, "is not a token file");
  }
  const std::uint32_t version = read_u32(bytes, 8), length = read_u32(bytes, 12);
  if (version != kFormatVersion) {
    fail(subject, fmt::format("has format version {}; this program reads {}", version, kFormatVersion));
  }
  if (length > kMaxHeaderBytes || length > bytes.size() - kPreambleBytes) {
    fail(subject, fmt::format("claims a header of {} bytes and has {} in all", length, bytes.size()));
  }
  header_end = kPreambleBytes + length;
  return parse_json(std::string_view(reinterpret_cast<const char*>(bytes.data()) + kPreambleBytes, length),
                    subject);
}

// The array of `count` elements that the header places at `name`. Every product is checked before it is made.
template <typename T>
std::span<const T> array_at(std::span<const std::byte> bytes, const JsonFields& arrays, std::string_view name,
                            std::int64_t count, std::size_t header_end, const std::string& subject) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  const std::int64_t begin = arrays.integer(name, 0, size);
  if (begin % static_cast<std::int64_t>(kAlignment) != 0 || begin < static_cast<std::int64_t>(header_end)) {
    fail(subject, fmt::format("places '{}' at byte {}, which is not a place for it", name, begin));
  }
  if (count > (size - begin) / static_cast<std::int64_t>(sizeof(T))) {
    fail(subject, fmt::format("is cut short: '{}' has {} elements from byte {} on, the file {} bytes", name,
                              count, begin, size));
  }
  return {reinterpret_cast<const T*>(bytes.data() + begin), static_cast<std::size_t>(count)};
}

void check_offsets(std::span<const std::uint64_t> offsets, std::int64_t tokens, std::int32_t max_length,
                   const std::string& subject) {
  if (offsets.front() != 0 || offsets.back() != static_cast<std::uint64_t>(tokens)) {
    fail(subject, "has offsets that do not span its tokens");
  }
  for (std::size_t row = 0; row + 1 < offsets.size(); ++row) {
    if (offsets[row + 1] <= offsets[row] || offsets[row + 1] > static_cast<std::uint64_t>(tokens)) {
      fail(subject, fmt::format("has offsets that do not rise at row {}", row));
    }
    if (offsets[row + 1] - offsets[row] > static_cast<std::uint64_t>(max_length)) {
      fail(subject, fmt::format("has a row {} longer than its own maximum of {} tokens", row, max_length));
    }
  }
}

}  // namespace

TokenFile TokenFile::open(const std::filesystem::path& path) {
  const std::string subject = path.string();
  TokenFile file{MappedFile(path)};
  const std::span<const std::byte> bytes = file.file_.bytes();
  std::size_t header_end = 0;
  const Json header = read_header(bytes, subject, header_end);
  const JsonFields fields(header, subject);
  const auto size = static_cast<std::int64_t>(bytes.size());

  const std::int64_t rows = fields.integer("rows", 1, std::numeric_limits<std::uint32_t>::max() - 1);
  const std::int64_t tokens = fields.integer("tokens", 1, size);
  file.max_length_ =
      static_cast<std::int32_t>(fields.integer("max_length", 1, std::numeric_limits<std::int32_t>::max()));
  file.truncated_rows_ = static_cast<std::uint32_t>(fields.integer("truncated_rows", 0, rows));
  file.label_names_ = fields.texts("label_names");
  file.content_id_ = fields.text("content_id");
  const Json* arrays_object = fields.find("arrays");
  if (arrays_object == nullptr) fail(subject, "has a header without 'arrays'");

  const JsonFields arrays(*arrays_object, subject);
  file.offsets_ = array_at<std::uint64_t>(bytes, arrays, "offsets", rows + 1, header_end, subject);
  file.ids_ = array_at<std::int32_t>(bytes, arrays, "ids", tokens, header_end, subject);
  file.type_ids_ = array_at<std::uint8_t>(bytes, arrays, "type_ids", tokens, header_end, subject);
  file.labels_ = array_at<std::int32_t>(bytes, arrays, "labels", rows, header_end, subject);

  check_offsets(file.offsets_, tokens, file.max_length_, subject);
  const auto [smallest_id, largest_id] = std::minmax_element(file.ids_.begin(), file.ids_.end());
  if (*smallest_id < 0) fail(subject, fmt::format("has a negative token id, {}", *smallest_id));
  file.largest_id_ = *largest_id;
  const auto labels = static_cast<std::int64_t>(file.label_names_.size());
  for (std::size_t row = 0; row < file.labels_.size(); ++row) {
    if (file.labels_[row] < 0 || file.labels_[row] >= labels) {
      fail(subject,
           fmt::format("has label {} at row {}; its header names {} labels", file.labels_[row], row, labels));
    }
  }
  return file;
}

std::int32_t TokenFile::length(std::uint32_t row) const {
  return static_cast<std::int32_t>(offsets_[row + 1] - offsets_[row]);
}

std::span<const std::int32_t> TokenFile::ids(std::uint32_t row) const {
  return ids_.subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
}

std::span<const std::uint8_t> TokenFile::type_ids(std::uint32_t row) const {
  return type_ids_.subspan(offsets_[row], offsets_[row + 1] - offsets_[row]);
}

}  // namespace batchwright::data
