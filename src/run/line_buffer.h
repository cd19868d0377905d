#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace batchwright::run {

// Bytes from a stream socket, cut into lines. A peer that never sends a newline must not eat all memory, so a
// line is bounded.
class LineBuffer {
 public:
  static constexpr std::size_t kMostLineBytes = 16 << 20;

  void append(std::string_view bytes) { bytes_.append(bytes); }
  // The next complete line without its end, or nothing yet. Throws InvalidInput when the pending line is
  // longer than kMostLineBytes.
  std::optional<std::string> next_line();
  bool empty() const { return bytes_.empty(); }
  std::string_view pending() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t searched_ = 0;  // no newline before this offset: each byte is looked at once
};

}  // namespace batchwright::run
