#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/prepared_input.h"
#include "cli/print_decision.h"
#include "cli/training_arguments.h"
#include "cli/tuning.h"
#include "cli/verbs.h"

namespace batchwright::cli {
namespace {

struct TuneArguments {
  TrainingArguments training;
  bool allow_inexact = false, exhaustive = false;
};

int tune_model(const TuneArguments& arguments) {
  const InterruptGuard interrupt;
  Progress progress(stderr, arguments.training.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const PreparedInput input =
      prepare_input(model_and_data(arguments.training, "tune"), arguments.training, interrupt, progress);
  TuningPlan plan;
  plan.input = input;
  plan.options = arguments.training.options;
  plan.exhaustive = arguments.exhaustive;
  plan.allow_inexact = arguments.allow_inexact;
  plan.budget_seconds = arguments.training.budget_seconds;
  plan.run_folder = arguments.training.run_folder;
  plan.overwrite = arguments.training.overwrite;
  const TuningResult result = tune_with_engine(plan, interrupt, progress);
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
  app.callback([&app, &exit_code, arguments] {
    finish(app, arguments->training);
    if (!arguments->training.split.empty() && arguments->training.split != "auto") {
      throw Error(ErrorKind::Usage, "--split", "is what tune finds out", "`batchwright train` takes it");
    }
    exit_code = tune_model(*arguments);
  });
}

}  // namespace batchwright::cli
