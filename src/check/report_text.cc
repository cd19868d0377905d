#include "check/report_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright::check {
namespace {

std::string_view line_of(const std::vector<SourceFile>& files, const std::string& path, int number) {
  const auto file =
      std::find_if(files.begin(), files.end(), [&](const SourceFile& f) { return f.path == path; });
  if (file == files.end() || number < 1) return {};
  const std::string_view text = file->text;
  std::size_t start = 0;
  for (int line = 1; line < number; ++line) {
    start = text.find('\n', start);
    if (start == std::string_view::npos) return {};
    ++start;
  }
  std::string_view row = text.substr(start, std::min(text.find('\n', start), text.size()) - start);
  if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
  return row;
}

std::string spell_finding(const FileReport& report, const Finding& finding,
                          const std::vector<SourceFile>& files) {
  const std::string_view severity = finding.severity == Severity::Mistake ? "mistake" : "note";
  const std::string where = finding.line > 0 ? fmt::format("{}:{}", report.path, finding.line) : report.path;
  std::string text = fmt::format("{}: {} {}: {}\n", where, severity, finding.kind, finding.what);
  if (!finding.consequence.empty()) text += fmt::format("    {}\n", finding.consequence);
  if (!finding.fix.empty()) text += fmt::format("    fix: {}\n", finding.fix);
  if (!finding.corrected.empty()) {
    const std::string_view old = line_of(files, report.path, finding.line);
    if (!old.empty() && old.size() <= 300)
      text += fmt::format("    - {}\n    + {}\n", old, finding.corrected);
  }
  return text;
}

std::string count(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace

std::string report_text(const std::vector<FileReport>& reports, const std::vector<SourceFile>& files) {
  std::string text;
  std::size_t mistakes = 0, notes = 0, unknown = 0;
  for (const FileReport& report : reports) {
    for (const Finding& finding : report.findings) {
      text += spell_finding(report, finding, files);
      ++(finding.severity == Severity::Mistake ? mistakes : notes);
    }
    if (report.verdict == Verdict::CannotTell) {
      ++unknown;
      text += fmt::format("{}: cannot tell: {}\n", report.path,
                          report.missing.empty() ? "too little is known" : report.missing);
    } else if (report.verdict == Verdict::Ok && !report.summary.empty()) {
      text += fmt::format("{}: ok: {}\n", report.path, report.summary);
    }
  }
  text += fmt::format("{} checked: {}, {}", count(reports.size(), "file"), count(mistakes, "mistake"),
                      count(notes, "note"));
  if (unknown > 0) text += fmt::format(", {} of which nothing can be told", count(unknown, "file"));
  return text + "\n";
}

}  // namespace batchwright::check
