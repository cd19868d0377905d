#include "check/report_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace batchwright::check {
namespace {

// As a diff shows it: lines that stay are context.
std::string spell_edit(const Edit& edit) {
  const bool kept = std::find(edit.lines.begin(), edit.lines.end(), edit.old) != edit.lines.end();
  std::string text = fmt::format("    @@ line {} @@\n", edit.line);
  if (!kept) text += fmt::format("    -{}\n", edit.old);
  for (const std::string& line : edit.lines)
    text += fmt::format("    {}{}\n", line == edit.old ? ' ' : '+', line);
  return text;
}

std::string spell_finding(const FileReport& report, const Finding& finding) {
  const std::string_view severity = finding.severity == Severity::Mistake ? "mistake" : "note";
  const std::string where = finding.line > 0 ? fmt::format("{}:{}", report.path, finding.line) : report.path;
  std::string text = fmt::format("{}: {} {}: {}\n", where, severity, finding.kind, finding.what);
  if (!finding.consequence.empty()) text += fmt::format("    {}\n", finding.consequence);
  if (!finding.fix.empty()) text += fmt::format("    fix: {}\n", finding.fix);
  for (const Edit& edit : finding.edits)
    if (edit.old.size() <= 300) text += spell_edit(edit);
  return text;
}

std::string count(std::size_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace

std::string report_text(const std::vector<FileReport>& reports) {
  std::string text;
  std::size_t mistakes = 0, notes = 0, unknown = 0;
  for (const FileReport& report : reports) {
    for (const Finding& finding : report.findings) {
      text += spell_finding(report, finding);
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
