#include "check/suppress.h"

#include <algorithm>

namespace batchwright::check {
namespace {

constexpr std::string_view kMark = "batchwright: ignore";

std::string_view line_of(std::string_view text, int number) {
  std::size_t start = 0;
  for (int line = 1; line < number; ++line) {
    start = text.find('\n', start);
    if (start == std::string_view::npos) return {};
    ++start;
  }
  return text.substr(start, std::min(text.find('\n', start), text.size()) - start);
}

// "[a, b]" behind the mark names kinds; nothing behind it means all.
bool names(std::string_view behind, std::string_view kind) {
  if (!behind.starts_with("[")) return true;
  behind = behind.substr(1, std::min(behind.find(']'), behind.size()) - 1);
  while (!behind.empty()) {
    const std::size_t comma = std::min(behind.find(','), behind.size());
    std::string_view name = behind.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (name == kind) return true;
    behind.remove_prefix(std::min(comma + 1, behind.size()));
  }
  return false;
}

bool silences(std::string_view row, std::string_view kind, bool whole_file) {
  const std::size_t at = row.find(kMark);
  if (at == std::string_view::npos) return false;
  std::string_view behind = row.substr(at + kMark.size());
  const bool file_mark = behind.starts_with("-file");
  if (file_mark != whole_file) return false;
  return names(file_mark ? behind.substr(5) : behind, kind);
}

}  // namespace

bool is_suppressed(const Finding& finding, std::string_view text) {
  if (text.find(kMark) == std::string_view::npos) return false;
  std::size_t start = 0;
  for (int line = 1; line <= 50 && start < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (silences(text.substr(start, end - start), finding.kind, true)) return true;
    start = end + 1;
  }
  if (finding.line < 1) return false;
  if (silences(line_of(text, finding.line), finding.kind, false)) return true;
  return finding.line > 1 && silences(line_of(text, finding.line - 1), finding.kind, false);
}

}  // namespace batchwright::check
