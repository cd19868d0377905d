#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/json.h"

// A token file written by hand, so that tests can break one part of it at a time.
namespace batchwright::data::test {

struct TokenRows {
  std::vector<std::vector<std::int32_t>> ids = {{101, 7, 102}, {101, 8, 9, 10, 102}, {101, 102}};
  std::vector<std::int32_t> labels = {0, 1, 1};
  Json header_changes = Json::object();  // merged over the header

  std::string bytes() const;
};

template <typename T>
void append_aligned(std::string& out, const std::vector<T>& values) {
  out.resize((out.size() + 63) / 64 * 64);
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

inline std::string TokenRows::bytes() const {
  std::vector<std::uint64_t> offsets = {0};
  std::vector<std::int32_t> flat;
  for (const auto& row : ids) {
    flat.insert(flat.end(), row.begin(), row.end());
    offsets.push_back(flat.size());
  }
  constexpr std::size_t kHeaderBytes = 1024 - 16;  // fixed, so that the arrays' places are known beforehand
  const auto aligned = [](std::size_t at) { return (at + 63) / 64 * 64; };
  const std::size_t at_offsets = 1024, at_ids = aligned(at_offsets + offsets.size() * 8),
                    at_types = aligned(at_ids + flat.size() * 4), at_labels = aligned(at_types + flat.size());
  Json header = {
      {"task", "sequence-classification"},
      {"rows", ids.size()},
      {"tokens", flat.size()},
      {"max_length", 128},
      {"truncated_rows", 0},
      {"label_names", {"bad", "good"}},
      {"content_id", "abc"},
      {"arrays", {{"offsets", at_offsets}, {"ids", at_ids}, {"type_ids", at_types}, {"labels", at_labels}}}};
  header.merge_patch(header_changes);
  std::string text = header.dump();
  text.resize(kHeaderBytes, ' ');
  std::string out = "BWTOKENS";
  const std::uint32_t numbers[2] = {2, kHeaderBytes};
  out.append(reinterpret_cast<const char*>(numbers), sizeof numbers);
  out += text;
  append_aligned(out, offsets);
  append_aligned(out, flat);
  append_aligned(out, std::vector<std::uint8_t>(flat.size(), 0));
  append_aligned(out, labels);
  return out;
}

}  // namespace batchwright::data::test
