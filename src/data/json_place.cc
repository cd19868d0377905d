#include "data/json_place.h"

#include <algorithm>

namespace batchwright::data {
namespace {

// Walks over JSON that a parser has accepted: it looks for structure only, and never past the end.
class Walk {
 public:
  explicit Walk(std::string_view text) : text_(text) {}

  std::int64_t line() {
    skip_space();
    return 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
  }

  // From the beginning of a value to that of the value one step inside it.
  bool enter(const JsonStep& step) {
    skip_space();
    const auto* name = std::get_if<std::string>(&step);
    if (!take(name != nullptr ? '{' : '[')) return false;
    for (std::size_t index = 0; at_ < text_.size(); ++index) {
      skip_space();
      if (name == nullptr && index == std::get<std::size_t>(step)) return peek() != ']';
      if (name != nullptr) {
        const std::size_t begin = at_;
        skip_string();
        const std::string_view key = text_.substr(begin, at_ - begin);
        skip_space();
        if (!take(':')) return false;
        if (key.size() == name->size() + 2 && key.substr(1, name->size()) == *name) return true;
      }
      skip_value();
      skip_space();
      if (!take(',')) return false;
    }
    return false;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }
  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  void skip_string() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
    at_ = std::min(at_ + 1, text_.size());
  }
  void skip_value() {
    std::int64_t depth = 0;
    skip_space();
    do {
      const char c = peek();
      if (c == '"') {
        skip_string();
      } else {
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        ++at_;
      }
      skip_space();
      if (depth == 0 && (peek() == ',' || peek() == '}' || peek() == ']')) return;
    } while (at_ < text_.size());
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t json_line(std::string_view text, const std::vector<JsonStep>& path) {
  Walk walk(text);
  std::int64_t line = walk.line();
  for (const JsonStep& step : path) {
    if (!walk.enter(step)) return line;
    line = walk.line();
  }
  return line;
}

}  // namespace batchwright::data
