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
  if (version != TokenFile::kVersion) {
    fail(subject, fmt::format("has format version {}; this program reads {}", version, TokenFile::kVersion));
  }
  if (length > kMaxHeaderBytes || length > bytes.size() - kPreambleBytes) {
    fail(subject, fmt::format("claims a header of {} bytes and has {} in all", length, bytes.size()));
  }
  header_end = kPreambleBytes + length;
  return parse_json(std::string_view(reinterpret_cast<const char*>(bytes.data()) + kPreambleBytes, length),
                    subject);
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

// The file's arrays by name, as the header places them.
struct TokenFile::Arrays {
  std::span<const std::byte> bytes;
  JsonFields header, places;
  std::size_t header_end;
  const std::string& subject;

  // `count` elements. Every product is checked before it is made.
  template <typename T>
  std::span<const T> get(std::string_view name, std::int64_t count) const {
    const auto size = static_cast<std::int64_t>(bytes.size());
    const std::int64_t begin = places.integer(name, 0, size);
    if (begin % static_cast<std::int64_t>(kAlignment) != 0 || begin < static_cast<std::int64_t>(header_end)) {
      fail(subject, fmt::format("places '{}' at byte {}, which is not a place for it", name, begin));
    }
    if (count > (size - begin) / static_cast<std::int64_t>(sizeof(T))) {
      fail(subject, fmt::format("is cut short: '{}' has {} elements from byte {} on, the file {} bytes", name,
                                count, begin, size));
    }
    return {reinterpret_cast<const T*>(bytes.data() + begin), static_cast<std::size_t>(count)};
  }
  // A count of the header; the file has at least a byte for each.
  std::int64_t count(std::string_view name, std::int64_t least) const {
    return header.integer(name, least, static_cast<std::int64_t>(bytes.size()));
  }
};

TokenFile TokenFile::open(const std::filesystem::path& path) {
  const std::string subject = path.string();
  TokenFile file{MappedFile(path)};
  const std::span<const std::byte> bytes = file.file_.bytes();
  std::size_t header_end = 0;
  const Json header = read_header(bytes, subject, header_end);
  const JsonFields fields(header, subject);

  const std::int64_t rows = fields.integer("rows", 1, std::numeric_limits<std::uint32_t>::max() - 1);
  const std::int64_t tokens = fields.integer("tokens", 1, static_cast<std::int64_t>(bytes.size()));
  file.task_ = parse_task(fields.text("task"), subject);
  file.max_length_ =
      static_cast<std::int32_t>(fields.integer("max_length", 1, std::numeric_limits<std::int32_t>::max()));
  file.truncated_rows_ = static_cast<std::uint32_t>(fields.integer("truncated_rows", 0, rows));
  file.skipped_rows_ = static_cast<std::uint32_t>(
      fields.integer("skipped_rows", 0, std::numeric_limits<std::uint32_t>::max(), 0));
  file.label_names_ = fields.texts("label_names");
  file.content_id_ = fields.text("content_id");
  const Json* places = fields.find("arrays");
  if (places == nullptr) fail(subject, "has a header without 'arrays'");
  const Arrays arrays{bytes, fields, JsonFields(*places, subject), header_end, subject};
  file.offsets_ = arrays.get<std::uint64_t>("offsets", rows + 1);
  file.ids_ = arrays.get<std::int32_t>("ids", tokens);
  file.type_ids_ = arrays.get<std::uint8_t>("type_ids", tokens);

  check_offsets(file.offsets_, tokens, file.max_length_, subject);
  const auto [smallest_id, largest_id] = std::minmax_element(file.ids_.begin(), file.ids_.end());
  if (*smallest_id < 0) fail(subject, fmt::format("has a negative token id, {}", *smallest_id));
  file.largest_id_ = *largest_id;
  switch (file.task_) {
    case Task::SequenceClassification:
      file.read_labels(arrays);
      break;
    case Task::TokenClassification:
    case Task::CausalLm:
      file.read_token_labels(arrays);
      break;
    case Task::QuestionAnswering:
      file.read_questions(arrays);
      break;
  }
  return file;
}

void TokenFile::read_labels(const Arrays& arrays) {
  labels_ = arrays.get<std::int32_t>("labels", rows());
  const auto names = static_cast<std::int64_t>(label_names_.size());
  for (std::size_t row = 0; row < labels_.size(); ++row) {
    if (labels_[row] < 0 || labels_[row] >= names) {
      fail(arrays.subject,
           fmt::format("has label {} at row {}; its header names {} labels", labels_[row], row, names));
    }
  }
}

void TokenFile::read_token_labels(const Arrays& arrays) {
  token_labels_ = arrays.get<std::int32_t>("token_labels", tokens());
  const auto names = static_cast<std::int64_t>(label_names_.size());
  for (std::size_t i = 0; i < token_labels_.size(); ++i) {
    const std::int32_t label = token_labels_[i];
    const bool known = task_ == Task::CausalLm ? label == ids_[i] : label >= 0 && label < names;
    if (label != kNoLabel && !known) {
      fail(arrays.subject, fmt::format("has label {} at token {}, which is none of its labels", label, i));
    }
  }
}

void TokenFile::read_questions(const Arrays& arrays) {
  const std::string& subject = arrays.subject;
  const std::int64_t questions = arrays.count("questions", 1), strings = arrays.count("strings", 1);
  const std::int64_t text_bytes = arrays.count("text_bytes", 0);
  spans_ = arrays.get<std::int32_t>("spans", std::int64_t{rows()} * 2);
  characters_ = arrays.get<std::int32_t>("characters", tokens() * 2);
  row_questions_ = arrays.get<std::uint32_t>("row_questions", rows());
  questions_ = arrays.get<std::uint32_t>("questions", questions * 4);
  strings_ = arrays.get<std::uint64_t>("strings", strings + 1);
  text_ = arrays.get<std::uint8_t>("text", text_bytes);
  if (strings_.front() != 0 || strings_.back() != static_cast<std::uint64_t>(text_bytes) ||
      !std::is_sorted(strings_.begin(), strings_.end())) {
    fail(subject, "has strings that do not span its text");
  }
  for (std::int64_t question = 0; question < questions; ++question) {
    const auto fields = questions_.subspan(static_cast<std::size_t>(question) * 4, 4);
    const std::int64_t answers_end = std::int64_t{fields[2]} + fields[3];
    if (fields[0] >= strings || fields[1] >= strings || (fields[3] > 0 && answers_end > strings)) {
      fail(subject, fmt::format("has question {} outside its {} strings", question, strings));
    }
  }
  if (!std::is_sorted(row_questions_.begin(), row_questions_.end()) || row_questions_.back() >= questions) {
    fail(subject, "has rows whose questions do not rise");
  }
  check_spans(subject);
}

void TokenFile::check_spans(const std::string& subject) const {
  for (std::uint32_t row = 0; row < rows(); ++row) {
    const Span answer = span(row);
    if (answer.first < 0 || answer.last < answer.first || answer.last >= length(row)) {
      fail(subject, fmt::format("has an answer at tokens {} to {} in row {} of {} tokens", answer.first,
                                answer.last, row, length(row)));
    }
    const auto context = static_cast<std::int64_t>(this->context(question(row)).size());
    for (std::int32_t token = 0; token < length(row); ++token) {
      const Span place = characters(row, token);
      const bool outside = place.first == -1 && place.last == -1;
      if (!outside && (place.first < 0 || place.last < place.first || place.last > context)) {
        fail(subject, fmt::format("has token {} of row {} at bytes {} to {} of a context of {}", token, row,
                                  place.first, place.last, context));
      }
    }
  }
}

std::int32_t TokenFile::length(std::uint32_t row) const {
  return static_cast<std::int32_t>(offsets_[row + 1] - offsets_[row]);
}

std::int64_t TokenFile::targets(std::uint32_t row) const {
  if (task_ == Task::SequenceClassification) return 1;
  if (task_ == Task::QuestionAnswering) return 2;
  const auto labels = token_labels(row).subspan(task_ == Task::CausalLm ? 1 : 0);
  return std::ssize(labels) - std::count(labels.begin(), labels.end(), kNoLabel);
}

TokenFile::Span TokenFile::characters(std::uint32_t row, std::int32_t token) const {
  const std::size_t at = 2 * (offsets_[row] + static_cast<std::size_t>(token));
  return {characters_[at], characters_[at + 1]};
}

std::vector<std::string_view> TokenFile::answers(std::uint32_t question) const {
  std::vector<std::string_view> result;
  const std::uint32_t first = questions_[4 * question + 2], count = questions_[4 * question + 3];
  for (std::uint32_t i = 0; i < count; ++i) result.push_back(string(first + i));
  return result;
}

std::string_view TokenFile::string(std::uint32_t number) const {
  return {reinterpret_cast<const char*>(text_.data()) + strings_[number],
          strings_[number + 1] - strings_[number]};
}

}  // namespace batchwright::data
