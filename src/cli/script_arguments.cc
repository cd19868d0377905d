#include "cli/script_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"
#include "data/python.h"

namespace batchwright::cli {
namespace {

std::vector<run::ConfigEdit> edits_of(const std::vector<std::string>& words) {
  std::vector<run::ConfigEdit> edits;
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    const std::size_t equals = words[i + 1].find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Error(ErrorKind::Usage, "--set-in", fmt::format("'{}' is not KEY=VALUE", words[i + 1]),
                  "Write --set-in train.yaml trainer.batch_size={micro}");
    }
    edits.push_back({words[i], words[i + 1].substr(0, equals), words[i + 1].substr(equals + 1)});
  }
  return edits;
}

}  // namespace

void add_script_options(CLI::App& app, ScriptArguments& arguments) {
  app.add_option("--devices", arguments.devices);
  app.add_option("--set-in", arguments.set_in)->type_size(2)->allow_extra_args(false);
  app.add_flag("--online", arguments.online);
}

std::vector<std::int64_t> devices_of(const std::string& text) {
  if (text.empty()) return {1};
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    std::int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 1 || number > 1024 || (next != end && *next != ',')) {
      throw Error(ErrorKind::Usage, "--devices",
                  fmt::format("'{}' is not a list of numbers of devices", text),
                  "Write 2, or 1,2,4 to compare them");
    }
    if (std::find(numbers.begin(), numbers.end(), number) == numbers.end()) numbers.push_back(number);
    if (next == end) return numbers;
    at = next + 1;
  }
}

std::int64_t one_device_count(const std::string& text) {
  const std::vector<std::int64_t> numbers = devices_of(text);
  if (numbers.size() > 1)
    throw Error(ErrorKind::Usage, "--devices", "takes one number with a command of yours");
  return numbers.front();
}

void refuse_training_options(const CLI::App& app, const std::set<std::string>& allowed) {
  static const std::set<std::string> kForEveryCommand = {
      "effective-batch", "memory-limit", "run", "overwrite", "json", "quiet", "devices", "set-in", "online"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (option->count() == 0 || kForEveryCommand.contains(name) || allowed.contains(name)) continue;
      throw Error(ErrorKind::Usage, "--" + name, "is for MODEL DATA, not for a command of yours",
                  "Give it to your script, after the --");
    }
  }
}

void refuse_script_options(const CLI::App& app, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (app.count(name) > 0) throw Error(ErrorKind::Usage, name, "is for a command of yours, after --");
  }
}

run::ScriptCommand script_command(const TrainingArguments& training, const ScriptArguments& arguments) {
  run::ScriptCommand script;
  script.words = training.words;
  script.edits = edits_of(arguments.set_in);
  script.steps_argument = arguments.steps_argument;
  script.online = arguments.online;
  return script;
}

Json request_of(const std::string& verb, const run::ScriptCommand& script, std::int64_t devices) {
  Json edits = Json::array(), files = Json::object();
  for (const run::ConfigEdit& edit : script.edits)
    edits.push_back({edit.file.string(), edit.key, edit.value});
  constexpr std::int64_t kMostHashedBytes = 4 << 20;  // scripts and configurations, not data
  for (const std::string& word : script.words) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(word, error)) continue;
    if (std::filesystem::file_size(word, error) > static_cast<std::uintmax_t>(kMostHashedBytes)) continue;
    files[word] = content_hash(read_file(word));
  }
  return {{"verb", verb},
          {"command", script.words},
          {"set_in", std::move(edits)},
          {"steps_arg", script.steps_argument},
          {"online", script.online},
          {"working_folder", std::filesystem::current_path().string()},
          {"files", std::move(files)},
          {"devices", devices}};
}

Json library_versions(const std::vector<std::string>& words) {
  static const char* kAsk =
      "import importlib.metadata as m, json, platform\n"
      "def v(n):\n"
      "  try: return m.version(n)\n"
      "  except m.PackageNotFoundError: return None\n"
      "print(json.dumps({'python': platform.python_version(), **{n: v(n) for n in "
      "('torch', 'transformers', 'peft', 'accelerate', 'lightning', 'trl', 'datasets', 'numpy')}}))";
  if (words.empty()) return Json::object();
  const std::filesystem::path program = words.front();
  const bool is_python = program.filename().string().starts_with("python");
  ProcessOptions options;
  options.command = {is_python ? program.string() : (program.parent_path() / "python").string(), "-c", kAsk};
  try {
    const CapturedOutput output = run_captured(options, std::chrono::seconds(30));
    if (output.status.succeeded()) return parse_json(last_line(output.text, 4096), "library versions");
  } catch (const Error&) {
    // No Python there: the command's own words are all that is known of it.
  }
  return Json::object();
}

void use_hook(run::ScriptSettings& settings) {
  settings.hook_folder = data::python_folder() / "batchwright" / "hook";
  if (!std::filesystem::exists(settings.hook_folder / "sitecustomize.py")) {
    throw Error(ErrorKind::NotFound, settings.hook_folder.string(),
                "does not hold the hook for training scripts",
                "Install the Python package batchwright beside this program");
  }
  settings.hook_recorder = data::hook_recorder();
}

}  // namespace batchwright::cli
