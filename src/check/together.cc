#include "check/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "check/config_check.h"
#include "check/library_versions.h"
#include "check/loops.h"
#include "check/suppress.h"

namespace batchwright::check {
namespace {

// More configurations than one run has: each folder is then a run of its own.
constexpr std::size_t kMostTogether = 24;

bool holds_configuration(std::string_view text) {
  for (const std::string_view word : {"TrainingArguments(", "Config(", "Accelerator(", "Trainer(",
                                      "train_batch_size", "DeepSpeedPlugin("}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

class Group {
 public:
  Group(const std::vector<const SourceFile*>& files, const CheckOptions& options)
      : files_(files), hints_(options.hints) {
    for (const SourceFile* file : files_) names_.push_back(file->path);
  }

  std::vector<FileReport> run() {
    for (std::size_t i = 0; i < files_.size(); ++i) sort_in(i);
    const ConfigResult configs = check_configurations(configs_, names_);
    const LogResult logs = check_logs(logs_, configs.runs, names_, hints_);
    accumulates_ = std::any_of(configs.runs.begin(), configs.runs.end(),
                               [](const Run& r) { return r.accumulation().value.value_or(1) > 1; });
    std::vector<FileReport> reports;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (auto report = report_of(i, configs, logs)) reports.push_back(std::move(*report));
    }
    return reports;
  }

 private:
  void sort_in(std::size_t i) {
    const SourceFile& file = *files_[i];
    if (says_untrained(file.text)) hints_.from_scratch = true;
    switch (file.kind) {
      case FileKind::Python:
        python(i);
        break;
      case FileKind::Tree:
        add_config(ConfigForm::Tree, file.text, i, 1);
        break;
      case FileKind::Shell:
        add_config(ConfigForm::Shell, file.text, i, 1);
        break;
      case FileKind::Log:
        add_log(i, file.text, 1);
        break;
      case FileKind::Page:
        page(i);
        break;
      case FileKind::Model:
        model(file.text);
        break;
      default:
        break;
    }
  }

  void add_config(ConfigForm form, std::string_view text, std::size_t i, int first_line) {
    configs_.push_back(
        {.form = form, .text = text, .file = i, .first_line = first_line, .settings_module = false});
  }

  void python(std::size_t i) {
    const std::string& text = files_[i]->text;
    const bool module =
        !may_hold_loop(text) && text.size() < 200'000 && text.find("batch") != std::string::npos;
    if (holds_configuration(text) || module)
      configs_.push_back(
          {.form = ConfigForm::Python, .text = text, .file = i, .first_line = 1, .settings_module = module});
  }

  void add_log(std::size_t i, std::string_view text, int first_line) {
    logs_.push_back({.text = text, .file = i, .first_line = first_line, .name = names_[i]});
    // A log often begins with the command, or holds the arguments beside its records; trainer_state.json has
    // neither.
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool json = first != std::string_view::npos && (text[first] == '{' || text[first] == '[') &&
                      text.find("\n{") == std::string_view::npos;
    if (json && text.find("\"log_history\"") == std::string_view::npos) {
      add_config(ConfigForm::Tree, text, i, first_line);
    } else if (!json &&
               kind_of("run", text.substr(0, std::min<std::size_t>(text.size(), 4000))) == FileKind::Shell) {
      add_config(ConfigForm::Shell, text.substr(0, 4000), i, first_line);
    }
  }

  // Settings stand between the blocks that hold their records: as a log, a page is read in one piece.
  void page(std::size_t i) {
    logs_.push_back({.text = files_[i]->text, .file = i, .first_line = 1, .name = names_[i]});
    for (const Block& block : blocks_of_page(files_[i]->text)) {
      const std::string& language = block.language;
      if (language == "json" || language == "yaml" || language == "yml" || language == "jsonc")
        add_config(ConfigForm::Tree, block.text, i, block.first_line);
      else if (language == "bash" || language == "sh" || language == "shell" || language == "console" ||
               language == "zsh")
        add_config(ConfigForm::Shell, block.text, i, block.first_line);
      else if (language == "python" || language == "py")
        add_config(ConfigForm::Python, block.text, i, block.first_line);
      else
        unnamed_block(i, block);
    }
  }

  void unnamed_block(std::size_t i, const Block& block) {
    if (!block.language.empty()) {  // fenced, without a language or with another one: its content decides
      const FileKind kind = kind_of("", block.text);
      if (kind == FileKind::Tree) return void(add_config(ConfigForm::Tree, block.text, i, block.first_line));
      if (kind == FileKind::Shell)
        return void(add_config(ConfigForm::Shell, block.text, i, block.first_line));
    }
  }

  static bool says_untrained(std::string_view text) {
    const std::string_view head = text.substr(0, 20'000);
    for (const std::string_view words :
         {"from scratch", "random init", "randomly initiali", "from_config("}) {
      if (head.find(words) != std::string_view::npos) return true;
    }
    return false;
  }

  // The sizes that a first loss is measured by (Hugging Face's config.json).
  void model(const std::string& text) {
    Json config;
    try {
      config = parse_json(text, "config.json");
    } catch (const Error&) {
      return;
    }
    if (!config.is_object()) return;
    std::string architecture;
    if (config.contains("architectures") && config["architectures"].is_array() &&
        !config["architectures"].empty() && config["architectures"][0].is_string())
      architecture = config["architectures"][0].get<std::string>();
    const bool classifier = architecture.find("SequenceClassification") != std::string::npos ||
                            architecture.find("ImageClassification") != std::string::npos;
    if (classifier && !hints_.classes && config.contains("id2label") && config["id2label"].is_object())
      hints_.classes = static_cast<double>(config["id2label"].size());
    const bool language = architecture.find("CausalLM") != std::string::npos ||
                          architecture.find("LMHead") != std::string::npos ||
                          architecture.find("MaskedLM") != std::string::npos;
    if (language && !hints_.vocabulary && config.contains("vocab_size") && config["vocab_size"].is_number())
      hints_.vocabulary = config["vocab_size"].get<double>();
  }

  std::optional<FileReport> report_of(std::size_t i, const ConfigResult& configs, const LogResult& logs) {
    const SourceFile& file = *files_[i];
    FileReport report;
    if (file.kind == FileKind::Python && may_hold_loop(file.text))
      report = check_python(file.text, file.path);
    if (file.kind == FileKind::Notebook) report = check_notebook(file.text, file.path);
    report.path = file.path;
    const auto take = [&](const std::vector<LocatedFinding>& findings) {
      for (const LocatedFinding& located : findings) {
        if (located.file == i) report.findings.push_back(located.finding);
      }
    };
    take(configs.findings);
    take(logs.findings);
    if (accumulates_)
      if (auto note = known_library_bug(file.text)) report.findings.push_back(std::move(*note));
    std::erase_if(report.findings, [&](const Finding& f) { return is_suppressed(f, file.text); });
    std::stable_sort(report.findings.begin(), report.findings.end(),
                     [](const Finding& a, const Finding& b) { return a.line < b.line; });
    const bool mistake = std::any_of(report.findings.begin(), report.findings.end(),
                                     [](const Finding& f) { return f.severity == Severity::Mistake; });
    if (mistake) {
      report.verdict = Verdict::Mistake;
    } else if (report.verdict == Verdict::Mistake) {
      report.verdict = Verdict::Ok;  // all its mistakes are suppressed
    }
    if (!mistake && report.findings.empty() && !says_something(i, configs, logs)) {
      if (!file.named) return std::nullopt;
      report.verdict = Verdict::CannotTell;
      report.missing = nothing_known(i, configs);
    }
    report.summary = !configs.summaries[i].empty() ? configs.summaries[i] : logs.summaries[i];
    return report;
  }

  bool says_something(std::size_t i, const ConfigResult& configs, const LogResult& logs) const {
    const SourceFile& file = *files_[i];
    if (!file.problem.empty() || file.kind == FileKind::Other) return false;
    if (file.kind == FileKind::Python || file.kind == FileKind::Notebook) return true;
    if (file.kind == FileKind::Model) return true;
    return configs.understood[i] || logs.records[i] > 0;
  }

  std::string nothing_known(std::size_t i, const ConfigResult& configs) const {
    const SourceFile& file = *files_[i];
    if (!file.problem.empty()) return file.problem;
    if (!configs.problems[i].empty()) return configs.problems[i];
    if (file.kind == FileKind::Log) return "a loss, a gradient norm or a learning rate on two lines or more";
    return "batch size, accumulation, launch command or training log: the file holds none that is known";
  }

  std::vector<const SourceFile*> files_;
  LogHints hints_;
  bool accumulates_ = false;  // some run does
  std::vector<std::string> names_;
  std::vector<ConfigText> configs_;
  std::vector<LogText> logs_;
};

// Files that are read together: all of them, or, where there are too many to be one run, those of each
// folder.
std::vector<std::vector<const SourceFile*>> groups_of(const std::vector<SourceFile>& files, bool separate) {
  std::vector<std::vector<const SourceFile*>> groups;
  const auto loose = std::count_if(files.begin(), files.end(), [](const SourceFile& f) {
    return f.kind != FileKind::Python && f.kind != FileKind::Notebook;
  });
  const bool one = static_cast<std::size_t>(loose) <= kMostTogether && files.size() <= 4 * kMostTogether;
  std::map<std::string, std::size_t> by_folder;
  for (const SourceFile& file : files) {
    if (separate || groups.empty()) {
      groups.push_back({&file});
      by_folder[std::filesystem::path(file.path).parent_path().string()] = groups.size() - 1;
      continue;
    }
    if (one) {
      groups[0].push_back(&file);
      continue;
    }
    const auto [slot, fresh] =
        by_folder.emplace(std::filesystem::path(file.path).parent_path().string(), groups.size());
    if (fresh) groups.emplace_back();
    groups[slot->second].push_back(&file);
  }
  return groups;
}

}  // namespace

std::vector<FileReport> check_together(const std::vector<SourceFile>& files, const CheckOptions& options) {
  std::vector<FileReport> reports;
  for (const auto& group : groups_of(files, options.separate)) {
    for (FileReport& report : Group(group, options).run()) reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace batchwright::check
