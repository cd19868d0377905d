#include "check/config_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "check/config_read.h"
#include "check/kinds.h"

namespace batchwright::check {
namespace {

using Rule = void (*)(const Run&, const std::vector<std::string>&, FindingList&);
constexpr Rule kRules[] = {
    check_world_size,   check_accumulation_places, check_divisibility, check_two_places,
    check_engine_rates, check_overrides,           check_clipping,     check_types,
    check_step_counts,  check_equivalence};

std::string summary_of(const Run& run) {
  const Known m = run.micro_batch(), a = run.accumulation(), d = run.processes();
  if (!m || !a) return "";
  if (!d) return fmt::format("{:g} x {:g} = {:g} examples a step on each process", *m, *a, *m * *a);
  return fmt::format("effective batch {:g} = micro-batch {:g} x accumulation {:g} x {:g} process{}",
                     *m * *a * *d, *m, *a, *d, *d == 1 ? "" : "es");
}

}  // namespace

Finding& FindingList::add(std::string_view kind, std::size_t file, int line) {
  for (LocatedFinding& old : all_) {
    if (old.file == file && old.finding.line == line && old.finding.kind == kind) return old.finding;
  }
  all_.push_back({.file = file, .finding = make_finding(kind, line), .written = "", .better = ""});
  return all_.back().finding;
}

Finding& FindingList::add(std::string_view kind, const Setting& at) { return add(kind, at.file, at.line); }

void FindingList::correct(const Setting& setting, std::string better) {
  if (all_.empty() || all_.back().finding.line != setting.line || all_.back().file != setting.file) return;
  all_.back().written = setting.quoted ? fmt::format("\"{}\"", setting.written) : setting.written;
  all_.back().better = std::move(better);
}

std::vector<LocatedFinding> FindingList::take() {
  std::vector<LocatedFinding> result(std::make_move_iterator(all_.begin()),
                                     std::make_move_iterator(all_.end()));
  all_.clear();
  return result;
}

std::string spell(double number) { return fmt::format("{:g}", number); }

std::string place(std::size_t file, int line, const std::vector<std::string>& files) {
  return line > 0 ? fmt::format("{}:{}", files[file], line) : files[file];
}

std::string spell(const Setting& setting, const std::vector<std::string>& files) {
  return fmt::format("{} = {} ({})", setting.key, setting.written, place(setting.file, setting.line, files));
}

// The line as it should read: the last occurrence of the value on it is the one behind the key.
void write_corrected(LocatedFinding& located, std::string_view text, int first_line) {
  if (located.better.empty() || located.written.empty()) return;
  std::size_t start = 0;
  for (int line = first_line; line < located.finding.line && start < text.size(); ++line) {
    const std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return;
    start = end + 1;
  }
  std::string row(text.substr(start, std::min(text.find('\n', start), text.size()) - start));
  if (!row.empty() && row.back() == '\r') row.pop_back();
  std::size_t at = row.rfind(located.written);
  if (const std::size_t comment = row.find(" #"); comment != std::string::npos)
    at = row.rfind(located.written, comment);
  if (at == std::string::npos || row.size() > 300) return;
  std::string better = row.substr(0, at) + located.better + row.substr(at + located.written.size());
  located.finding.edits = {{located.finding.line, std::move(row), {std::move(better)}}};
}

ConfigResult check_configurations(const std::vector<ConfigText>& texts,
                                  const std::vector<std::string>& files) {
  ConfigResult result;
  result.understood.resize(files.size());
  result.problems.resize(files.size());
  result.summaries.resize(files.size());
  std::vector<Section> sections;
  std::vector<Setting> comments;
  for (const ConfigText& text : texts) {
    std::vector<Section> own;
    if (text.form == ConfigForm::Shell) {
      own = read_shell_sections(text.text, text.file, text.first_line);
    } else if (text.form == ConfigForm::Python) {
      own = read_python_sections(text.text, text.file, text.first_line);
      for (Section& section : own) {
        if (!text.settings_module || own.size() != 1 || !section.has("variables")) continue;
        section.marks = {"document"};
        // nanoGPT's: its accumulation steps are those of all processes together.
        if (text.text.find("block_size") != std::string_view::npos &&
            text.text.find("max_iters") != std::string_view::npos)
          section.marks.push_back("nanogpt");
      }
    } else {
      try {
        const ConfigNode tree = parse_config_tree(text.text, files[text.file]);
        own = read_tree_sections(tree, text.file, files[text.file]);
        for (Section& section : own) {
          for (Setting& setting : section.settings) setting.line += text.first_line - 1;
        }
      } catch (const Error& e) {
        result.problems[text.file] = e.what();
      }
    }
    for (Section& section : own) {
      const bool holds = !section.settings.empty() || !section.program.empty() ||
                         section.tool == Tool::DeepSpeed || section.tool == Tool::Accelerate;
      if (holds) result.understood[text.file] = true;
      sections.push_back(std::move(section));
    }
    for (Setting& setting : settings_in_comments(text.text, text.file)) {
      setting.line += text.first_line - 1;
      comments.push_back(std::move(setting));
    }
  }
  result.runs = assemble_runs(sections, comments, files);
  FindingList found;
  for (const Run& run : result.runs) {
    for (const Rule rule : kRules) rule(run, files, found);
    const std::string summary = summary_of(run);
    for (const std::optional<Section>& section : {std::optional(run.arguments), run.engine, run.launch}) {
      if (section && section->file < files.size() && result.summaries[section->file].empty())
        result.summaries[section->file] = summary;
    }
  }
  result.findings = found.take();
  for (LocatedFinding& located : result.findings) {
    for (const ConfigText& text : texts) {
      if (text.file == located.file && text.first_line <= located.finding.line)
        write_corrected(located, text.text, text.first_line);
    }
  }
  return result;
}

}  // namespace batchwright::check
