#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/prepared_input.h"
#include "cli/print_decision.h"
#include "cli/script_tuning.h"
#include "cli/training_arguments.h"
#include "cli/tuning.h"
#include "cli/verbs.h"

namespace batchwright::cli {
namespace {

struct TuneArguments {
  TrainingArguments training;
  bool allow_inexact = false, exhaustive = false;
  std::string devices;  // "2", or for our engine "1,2"
  // For a command of the user's.
  std::vector<std::string> set_in;
  std::string steps_argument;
  bool online = false;
};

// Words that only our engine understands, given with a command of the user's.
void refuse_training_options(const CLI::App& app) {
  static const std::set<std::string> kAlsoForCommands = {
      "effective-batch", "memory-limit", "budget",  "run",    "overwrite", "json",  "quiet",
      "allow-inexact",   "exhaustive",   "devices", "set-in", "steps-arg", "online"};
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (option->count() == 0 || kAlsoForCommands.contains(name)) continue;
      throw Error(ErrorKind::Usage, "--" + name, "is for MODEL DATA, not for a command of yours",
                  "Give it to your script, after the --");
    }
  }
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

TuningResult tune_command(const TuneArguments& arguments, const InterruptGuard& interrupt,
                          Progress& progress) {
  ScriptTuningPlan plan;
  plan.script.words = arguments.training.words;
  plan.script.edits = edits_of(arguments.set_in);
  plan.script.steps_argument = arguments.steps_argument;
  plan.script.online = arguments.online;
  plan.effective_batch = arguments.training.options.effective_batch;
  plan.devices = devices_of(arguments.devices).front();
  plan.memory_limit_bytes = arguments.training.options.memory_limit_bytes;
  plan.exhaustive = arguments.exhaustive;
  plan.allow_inexact = arguments.allow_inexact;
  plan.overwrite = arguments.training.overwrite;
  plan.budget_seconds = arguments.training.budget_seconds;
  plan.run_folder = arguments.training.run_folder;
  return tune_script(plan, interrupt, progress);
}

TuningResult tune_model(const TuneArguments& arguments, const InterruptGuard& interrupt, Progress& progress) {
  TuningPlan plan;
  plan.input =
      prepare_input(model_and_data(arguments.training, "tune"), arguments.training, interrupt, progress);
  plan.options = arguments.training.options;
  plan.exhaustive = arguments.exhaustive;
  plan.allow_inexact = arguments.allow_inexact;
  plan.micro_tokens = arguments.training.micro_tokens;
  plan.devices = devices_of(arguments.devices);
  plan.budget_seconds = arguments.training.budget_seconds;
  plan.run_folder = arguments.training.run_folder;
  plan.overwrite = arguments.training.overwrite;
  return tune_with_engine(plan, interrupt, progress);
}

int tune(const TuneArguments& arguments) {
  const InterruptGuard interrupt;
  Progress progress(stderr, arguments.training.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const TuningResult result = arguments.training.has_command ? tune_command(arguments, interrupt, progress)
                                                             : tune_model(arguments, interrupt, progress);
  progress.finish();
  if (arguments.training.json) {
    fmt::print("{}\n", dump_line(result.document));
  } else {
    fmt::print("{}Run folder: {}\n", describe(result.decision), result.folder.string());
    for (const std::string& remedy : result.remedies) fmt::print("{}\n", remedy);
  }
  if (result.interrupted) return exit_code(ErrorKind::Interrupted);
  return result.decision.recommended ? 0 : exit_code(ErrorKind::No);
}

}  // namespace

void add_tune_verb(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TuneArguments>();
  add_training_options(app, arguments->training);
  app.add_flag("--allow-inexact", arguments->allow_inexact);
  app.add_flag("--exhaustive", arguments->exhaustive);
  app.add_option("--devices", arguments->devices);
  app.add_option("--set-in", arguments->set_in)->type_size(2)->allow_extra_args(false);
  app.add_option("--steps-arg", arguments->steps_argument);
  app.add_flag("--online", arguments->online);
  app.callback([&app, &exit_code, arguments] {
    finish(app, arguments->training);
    if (arguments->training.has_command) {
      refuse_training_options(app);
      if (devices_of(arguments->devices).size() > 1) {
        throw Error(ErrorKind::Usage, "--devices", "takes one number with a command of yours");
      }
    } else {
      for (const char* name : {"--set-in", "--steps-arg", "--online"}) {
        if (app.count(name) > 0) throw Error(ErrorKind::Usage, name, "is for a command of yours, after --");
      }
    }
    if (!arguments->training.split.empty() && arguments->training.split != "auto") {
      throw Error(ErrorKind::Usage, "--split", "is what tune finds out", "`batchwright train` takes it");
    }
    exit_code = tune(*arguments);
  });
}

}  // namespace batchwright::cli
