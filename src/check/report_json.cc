#include "check/report_json.h"

#include <array>
#include <cctype>
#include <set>
#include <string_view>

#include "check/kinds.h"

namespace batchwright::check {
namespace {

std::string_view verdict_name(Verdict verdict) {
  constexpr std::array<std::string_view, 3> kNames = {"ok", "mistake", "cannot_tell"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::string_view affects_name(Affects affects) {
  constexpr std::array<std::string_view, 4> kNames = {"gradient", "schedule", "report", "memory"};
  return kNames[static_cast<std::size_t>(affects)];
}

// SARIF locations are URIs (RFC 3986): everything but unreserved characters and the path's slashes is
// escaped.
std::string uri_of(const std::string& path) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string uri;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || std::string_view("-._~/").find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += '%';
      uri += kDigits[byte >> 4];
      uri += kDigits[byte & 15];
    }
  }
  return uri;
}

Json finding_json(const Finding& finding) {
  Json result = {{"kind", finding.kind},
                 {"severity", finding.severity == Severity::Mistake ? "mistake" : "note"},
                 {"line", finding.line > 0 ? Json(finding.line) : Json(nullptr)},
                 {"what", finding.what},
                 {"consequence", finding.consequence},
                 {"fix", finding.fix},
                 {"affects", affects_name(finding.affects)},
                 {"effective_weights", nullptr}};
  if (finding.effective_weights) result["effective_weights"] = *finding.effective_weights;
  if (!finding.edits.empty()) {
    Json diff = Json::array();
    for (const Edit& edit : finding.edits)
      diff.push_back({{"line", edit.line}, {"old", edit.old}, {"new", edit.lines}});
    result["diff"] = std::move(diff);
  }
  return result;
}

// Whole lines are replaced, each with its line end.
Json sarif_fix(const std::string& path, const Finding& finding) {
  Json replacements = Json::array();
  for (const Edit& edit : finding.edits) {
    std::string text;
    for (const std::string& line : edit.lines) text += line + "\n";
    replacements.push_back(
        {{"deletedRegion",
          {{"startLine", edit.line}, {"startColumn", 1}, {"endLine", edit.line + 1}, {"endColumn", 1}}},
         {"insertedContent", {{"text", std::move(text)}}}});
  }
  return {{"description", {{"text", finding.fix}}},
          {"artifactChanges", Json::array({{{"artifactLocation", {{"uri", uri_of(path)}}},
                                            {"replacements", std::move(replacements)}}})}};
}

}  // namespace

Json report_json(const std::vector<FileReport>& reports) {
  Json files = Json::array();
  for (const FileReport& report : reports) {
    Json findings = Json::array();
    for (const Finding& finding : report.findings) findings.push_back(finding_json(finding));
    Json file = {
        {"path", report.path}, {"verdict", verdict_name(report.verdict)}, {"findings", std::move(findings)}};
    if (report.verdict == Verdict::CannotTell) file["missing"] = report.missing;
    if (!report.summary.empty()) file["summary"] = report.summary;
    files.push_back(std::move(file));
  }
  return {{"version", 1}, {"files", std::move(files)}};
}

Json report_sarif(const std::vector<FileReport>& reports) {
  Json results = Json::array(), rules = Json::array();
  std::set<std::string> used;
  for (const FileReport& report : reports) {
    for (const Finding& finding : report.findings) {
      const std::string_view level = finding.severity == Severity::Mistake ? "error" : "note";
      Json location = {{"artifactLocation", {{"uri", uri_of(report.path)}}}};
      if (finding.line > 0) location["region"] = {{"startLine", finding.line}};
      Json result = {
          {"ruleId", finding.kind},
          {"level", level},
          {"message", {{"text", finding.what + ". " + finding.consequence + ". Fix: " + finding.fix}}},
          {"locations", Json::array({{{"physicalLocation", std::move(location)}}})}};
      if (!finding.edits.empty()) result["fixes"] = Json::array({sarif_fix(report.path, finding)});
      results.push_back(std::move(result));
      used.insert(finding.kind);
    }
  }
  for (const std::string& name : used) {
    const Kind* kind = find_kind(name);
    if (kind == nullptr) continue;
    rules.push_back({{"id", name},
                     {"shortDescription", {{"text", kind->what}}},
                     {"fullDescription", {{"text", kind->consequence}}},
                     {"help", {{"text", kind->fix}}}});
  }
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       Json::array(
           {{{"tool",
              {{"driver",
                {{"name", "batchwright"}, {"version", BATCHWRIGHT_VERSION}, {"rules", std::move(rules)}}}}},
             {"results", std::move(results)}}})}};
}

}  // namespace batchwright::check
