#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/prepared_input.h"
#include "cli/print_decision.h"
#include "cli/script_arguments.h"
#include "cli/script_tuning.h"
#include "cli/training_arguments.h"
#include "cli/tuning.h"
#include "cli/verbs.h"

namespace batchwright::cli {
namespace {

struct TuneArguments {
  TrainingArguments training;
  bool allow_inexact = false, exhaustive = false;
  ScriptArguments script;
};

TuningResult tune_command(const TuneArguments& arguments, InterruptGuard& interrupt, Progress& progress) {
  ScriptTuningPlan plan;
  plan.script = script_command(arguments.training, arguments.script);
  plan.effective_batch = arguments.training.options.effective_batch;
  plan.devices = one_device_count(arguments.script.devices);
  plan.memory_limit_bytes = arguments.training.options.memory_limit_bytes;
  plan.exhaustive = arguments.exhaustive;
  plan.allow_inexact = arguments.allow_inexact;
  plan.overwrite = arguments.training.overwrite;
  plan.use_cache = !arguments.training.no_cache;
  plan.budget_seconds = arguments.training.budget_seconds;
  plan.run_folder = arguments.training.run_folder;
  return tune_script(plan, interrupt, progress);
}

TuningResult tune_model(const TuneArguments& arguments, InterruptGuard& interrupt, Progress& progress) {
  TuningPlan plan;
  plan.input =
      prepare_input(model_and_data(arguments.training, "tune"), arguments.training, interrupt, progress);
  plan.options = arguments.training.options;
  plan.exhaustive = arguments.exhaustive;
  plan.allow_inexact = arguments.allow_inexact;
  plan.micro_tokens = arguments.training.micro_tokens;
  plan.devices = devices_of(arguments.script.devices);
  plan.budget_seconds = arguments.training.budget_seconds;
  plan.run_folder = arguments.training.run_folder;
  plan.overwrite = arguments.training.overwrite;
  plan.use_cache = !arguments.training.no_cache;
  return tune_with_engine(plan, interrupt, progress);
}

int tune(const TuneArguments& arguments) {
  InterruptGuard interrupt;
  Progress progress(stderr, arguments.training.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const TuningResult result = arguments.training.has_command ? tune_command(arguments, interrupt, progress)
                                                             : tune_model(arguments, interrupt, progress);
  progress.finish();
  if (arguments.training.json) {
    fmt::print("{}\n", dump_line(result.document));
  } else {
    fmt::print("{}Run folder: {}\n", describe(result), result.folder.string());
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
  add_script_options(app, arguments->script);
  app.add_flag("--no-cache", arguments->training.no_cache);
  app.add_option("--steps-arg", arguments->script.steps_argument);
  app.callback([&app, &exit_code, arguments] {
    finish(app, arguments->training);
    if (arguments->training.has_command) {
      refuse_training_options(app, {"budget", "allow-inexact", "exhaustive", "steps-arg", "no-cache"});
    } else {
      refuse_script_options(app, {"--set-in", "--steps-arg", "--online"});
    }
    if (!arguments->training.split.empty() && arguments->training.split != "auto") {
      throw Error(ErrorKind::Usage, "--split", "is what tune finds out", "`batchwright train` takes it");
    }
    exit_code = tune(*arguments);
  });
}

}  // namespace batchwright::cli
