#include "run/line_buffer.h"

#include <fmt/format.h>

#include "base/error.h"

namespace batchwright::run {

std::optional<std::string> LineBuffer::next_line() {
  const std::size_t end = bytes_.find('\n', searched_);
  if (end == std::string::npos) {
    searched_ = bytes_.size();
    if (bytes_.size() > kMostLineBytes) {
      throw Error(ErrorKind::InvalidInput, "protocol message",
                  fmt::format("has more than {} bytes without a newline", kMostLineBytes));
    }
    return std::nullopt;
  }
  std::string line = bytes_.substr(0, end);
  bytes_.erase(0, end + 1);
  searched_ = 0;
  return line;
}

}  // namespace batchwright::run
