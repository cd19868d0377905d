#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "check/kinds.h"
#include "check/report_json.h"
#include "check/report_text.h"
#include "check/together.h"
#include "cli/doc_pages.h"
#include "cli/verbs.h"

namespace batchwright::cli {
namespace {

struct CheckRequest {
  std::vector<std::string> paths;
  std::string explain;
  bool json = false, sarif = false, strict = false, separate = false;
  double classes = 0, vocabulary = 0;
};

std::string standard_input() {
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t read = std::fread(buffer, 1, sizeof buffer, stdin)) text.append(buffer, read);
  return text;
}

// The section "## kind" of docs/check-kinds.md.
std::string page_of(const std::string& kind) {
  for (const DocPage& page : doc_pages()) {
    if (page.name != "check-kinds") continue;
    const std::string heading = "\n## " + kind + "\n";
    const std::size_t start = page.text.find(heading);
    if (start == std::string_view::npos) break;
    const std::size_t end = page.text.find("\n## ", start + 1);
    return std::string(page.text.substr(start + 1, end == std::string_view::npos ? end : end - start));
  }
  return "";
}

void explain(const std::string& name) {
  const check::Kind* kind = check::find_kind(name);
  if (kind == nullptr) {
    std::vector<std::string_view> names;
    for (const check::Kind& known : check::all_kinds()) names.push_back(known.name);
    const std::string near = nearest_choice(name, names);
    throw Error(ErrorKind::Usage, "--explain " + name, "is not a kind of mistake that is known",
                near.empty() ? fmt::format("Known are {}", fmt::join(names, ", "))
                             : fmt::format("Did you mean '{}'?", near));
  }
  const std::string page = page_of(name);
  fmt::print("{}", page.empty() ? fmt::format("## {}\n\n{}.\n\nWhat follows: {}.\n\nRight: {}.\n", kind->name,
                                              kind->what, kind->consequence, kind->fix)
                                : page);
}

int verdict_code(const std::vector<check::FileReport>& reports, bool strict) {
  const bool bad = std::any_of(reports.begin(), reports.end(), [&](const check::FileReport& report) {
    return report.verdict == check::Verdict::Mistake ||
           (strict && report.verdict == check::Verdict::CannotTell);
  });
  return bad ? batchwright::exit_code(ErrorKind::No) : 0;
}

int run_check(const CheckRequest& request) {
  if (!request.explain.empty()) {
    explain(request.explain);
    return 0;
  }
  if (request.paths.empty())
    throw Error(ErrorKind::Usage, "batchwright check", "needs a file, a folder or '-'",
                "batchwright check train.py config.yaml trainer_state.json");
  if (request.json && request.sarif)
    throw Error(ErrorKind::Usage, "--json, --sarif", "exclude each other", "Choose one");
  const bool reads_input = std::find(request.paths.begin(), request.paths.end(), "-") != request.paths.end();
  const std::vector<check::SourceFile> files =
      check::gather_files(request.paths, reads_input ? standard_input() : "");
  check::CheckOptions options;
  options.separate = request.separate;
  if (request.classes > 0) options.hints.classes = request.classes;
  if (request.vocabulary > 0) options.hints.vocabulary = request.vocabulary;
  std::vector<check::FileReport> reports = check::check_together(files, options);
  if (reports.empty()) {
    reports.push_back({.path = request.paths[0],
                       .verdict = check::Verdict::CannotTell,
                       .findings = {},
                       .missing = "a file with a training loop, a configuration or a log: none was found",
                       .summary = ""});
  }
  if (request.json)
    fmt::print("{}\n", dump_line(check::report_json(reports)));
  else if (request.sarif)
    fmt::print("{}\n", dump_line(check::report_sarif(reports)));
  else
    fmt::print("{}", check::report_text(reports));
  return verdict_code(reports, request.strict);
}

}  // namespace

void add_check_verb(CLI::App& app, int& exit_code) {
  const auto request = std::make_shared<CheckRequest>();
  app.add_option("paths", request->paths);
  app.add_flag("--json", request->json);
  app.add_flag("--sarif", request->sarif);
  app.add_flag("--strict", request->strict);
  app.add_flag("--separate", request->separate);
  app.add_option("--explain", request->explain);
  app.add_option("--classes", request->classes)->check(CLI::Range(2.0, 1e7));
  app.add_option("--vocabulary,--vocab", request->vocabulary)->check(CLI::Range(2.0, 1e7));
  app.callback([request, &exit_code] { exit_code = run_check(*request); });
}

}  // namespace batchwright::cli
