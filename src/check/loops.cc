#include "check/loops.h"

#include <string.h>  // memmem

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "check/corrections.h"
#include "check/explore.h"
#include "check/scan.h"
#include "check/syntax.h"

namespace batchwright::check {
namespace {

FileReport cannot_tell(const std::string& path, std::string missing) {
  FileReport report;
  report.path = path;
  report.verdict = Verdict::CannotTell;
  report.missing = std::move(missing);
  return report;
}

// The source of one cell: nbformat writes a string or a list of lines.
void append_cell(const Json& cell, std::string& code) {
  const auto kind = cell.find("cell_type");
  if (kind == cell.end() || !kind->is_string() || kind->get<std::string>() != "code") return;
  auto source = cell.find("source");
  if (source == cell.end()) source = cell.find("input");
  if (source == cell.end()) return;
  std::string text;
  if (source->is_string()) text = source->get<std::string>();
  if (source->is_array())
    for (const auto& line : *source)
      if (line.is_string()) text += line.get<std::string>();
  // Magics and shell lines are not Python; a comment keeps the lines counted.
  bool line_start = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (line_start && (text[i] == '%' || text[i] == '!')) code += '#';
    code += text[i];
    line_start = text[i] == '\n';
  }
  code += "\n";
}

}  // namespace

bool may_hold_loop(std::string_view source) {
  // What is called says it, so one pass looks at what stands before every "(".
  bool steps = false, backward = false;
  const char* const begin = source.data();
  const char* const end = begin + source.size();
  for (const char* at = begin;
       (at = static_cast<const char*>(memchr(at, '(', static_cast<std::size_t>(end - at)))) != nullptr;
       ++at) {
    const std::string_view before(begin, static_cast<std::size_t>(at - begin));
    if (before.empty()) continue;
    switch (before.back()) {
      case 'p':
        if (before.ends_with("training_step")) return true;
        steps = steps || before.ends_with(".step");
        break;
      case 'd':
        backward = backward || before.ends_with("backward") || before.ends_with("autograd.grad");
        break;
      case 'r':
        if (before.ends_with("loss_scaler") || before.ends_with("native_scaler") ||
            before.ends_with("amp_scaler"))
          return true;
        if (before.ends_with("Trainer") && source.find("compute_loss_func=") != std::string_view::npos)
          return true;
        break;
      case 's':
        if (before.ends_with("apply_gradients") || before.ends_with("apply_updates") ||
            before.ends_with("MultiSteps"))
          return true;
        if (before.ends_with("compute_loss") && source.find("Trainer)") != std::string_view::npos)
          return true;
        break;
      case 'e':
        if (before.ends_with(".minimize")) return true;
        break;
      default:
        break;
    }
    if (steps && backward) return true;
  }
  if (!backward) return false;
  // memmem: several times as fast as string_view::find on a large source.
  const auto has = [&](std::string_view word) {
    return memmem(source.data(), source.size(), word.data(), word.size()) != nullptr;
  };
  return has("zero_grad") || has(".grad.zero_(") || has(".grad = None");
}

namespace {

constexpr int kMostCorrections = 4;  // changed files that are checked again

std::vector<Finding> findings_of(std::string_view source) {
  const Module module = parse_python(source);
  if (module.incomplete || module.has_errors) return {};
  return explore(module, Scan(module, source)).findings;
}

bool has_mistake(const std::vector<Finding>& findings, std::string_view kind) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return finding.severity == Severity::Mistake && finding.kind == kind;
  });
}

// Keeps a correction only when the file, so changed, shows the mistake no longer and none that it did not
// show.
void add_corrections(std::vector<Finding>& findings, const Module& module, const Scan& scan) {
  int tried = 0;
  for (Finding& finding : findings) {
    if (finding.severity != Severity::Mistake) continue;
    for (const auto& edits : corrections_of(finding, module, scan)) {
      if (tried++ >= kMostCorrections) return;
      const std::string changed = apply_edits(scan.source(), edits);
      if (!may_hold_loop(changed)) continue;
      const auto after = findings_of(changed);
      const bool mends = !has_mistake(after, finding.kind) &&
                         std::all_of(after.begin(), after.end(), [&](const Finding& other) {
                           return other.severity != Severity::Mistake || has_mistake(findings, other.kind);
                         });
      if (!mends) continue;
      finding.edits = edits;
      break;
    }
  }
}

}  // namespace

FileReport check_python(std::string_view source, const std::string& path) {
  FileReport report;
  report.path = path;
  if (!may_hold_loop(source)) return report;
  const Module module = parse_python(source);
  if (module.incomplete)
    return cannot_tell(path, "the file is nested too deeply or too large to be read as a whole");
  const Scan scan(module, source);
  const Judgement judgement = explore(module, scan);
  report.findings = judgement.findings;
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.line < b.line; });
  for (const Finding& finding : report.findings)
    if (finding.severity == Severity::Mistake) report.verdict = Verdict::Mistake;
  if (report.verdict == Verdict::Mistake && !module.has_errors)
    add_corrections(report.findings, module, scan);
  if (module.has_errors && !judgement.trains && scan.accumulates())
    return cannot_tell(path,
                       "parts of the file are not valid Python, and no training loop shows in the rest");
  if (report.verdict == Verdict::Ok && !judgement.missing.empty())
    return cannot_tell(path, judgement.missing);
  return report;
}

FileReport check_notebook(std::string_view json, const std::string& path) {
  std::string code;
  try {
    const Json notebook = parse_json(json, path);
    const auto collect = [&](const Json& holder) {
      if (!holder.is_object()) return;
      const auto cells = holder.find("cells");
      if (cells == holder.end() || !cells->is_array()) return;
      for (const auto& cell : *cells)
        if (cell.is_object()) append_cell(cell, code);
    };
    collect(notebook);
    if (notebook.is_object() && notebook.contains("worksheets") && notebook["worksheets"].is_array())
      for (const auto& sheet : notebook["worksheets"]) collect(sheet);
  } catch (const Error& error) {
    return cannot_tell(path, std::string("the notebook is not valid JSON: ") + error.message());
  }
  FileReport report = check_python(code, path);
  for (Finding& finding : report.findings) finding.edits.clear();  // lines of the code, not of the notebook
  return report;
}

}  // namespace batchwright::check
