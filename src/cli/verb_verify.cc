#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/table.h"
#include "cli/prepared_input.h"
#include "cli/training_arguments.h"
#include "cli/verbs.h"
#include "run/engine.h"
#include "run/run_folder.h"
#include "run/training.h"

namespace batchwright::cli {
namespace {

std::string cell(const Json& value) {
  return value.is_number() ? fmt::format("{:.1e}", value.get<double>()) : "-";
}

void print_table(const Json& result) {
  Table table({{"split", Align::Left},
               {"layout", Align::Left},
               {"checkpointing", Align::Left},
               {"gradient difference"},
               {"loss difference"},
               {"verdict", Align::Left},
               {"worst tensor", Align::Left}});
  double worst = 0;
  std::int64_t compared = 0;
  for (const Json& row : result.at("splits")) {
    const Json& difference = row.at("max_relative_gradient_difference");
    if (difference.is_number()) {
      worst = std::max(worst, difference.get<double>());
      ++compared;
    }
    table.add_row({fmt::format("{}x{}", row.at("micro_batch").get<std::int64_t>(),
                               row.at("accumulation_steps").get<std::int64_t>()),
                   row.at("layout").get<std::string>(), row.at("checkpointing").get<std::string>(),
                   cell(difference), cell(row.at("loss_difference")), row.at("verdict").get<std::string>(),
                   row.at("worst_tensor").is_string() ? row.at("worst_tensor").get<std::string>() : ""});
  }
  const bool same = result.at("verdict") == "same";
  fmt::print(
      "{}\n{}: {} ways to cut the same effective batch, largest gradient difference {:.1e} (at most "
      "{:.0e}).\n",
      table.to_string(), same ? "The same gradient" : "The gradient DIFFERS", compared, worst,
      result.at("tolerance").get<double>());
}

int verify(const TrainingArguments& arguments) {
  const InterruptGuard interrupt;
  Progress progress(stderr, arguments.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const PreparedInput input =
      prepare_input(model_and_data(arguments, "verify"), arguments, interrupt, progress);
  run::find_engine();  // before a folder is made
  Json request = request_of("verify", input, arguments.options);
  const std::filesystem::path path = arguments.run_folder.empty()
                                         ? run::unused_folder(default_run_folder("verify", request))
                                         : std::filesystem::path(arguments.run_folder);
  run::RunFolder folder(path, std::move(request), arguments.overwrite);
  run::EngineJob job;
  job.mode = run::JobMode::Verify;
  job.model_folder = input.model_folder.string();
  job.token_file = input.token_file.string();
  job.run_folder = std::filesystem::absolute(path).string();
  job.options = arguments.options;
  run::TrainingOutcome outcome;
  try {
    outcome = run::run_training(
        run::engine_command(job, path), interrupt, [](const run::StepReport&) {},
        [&](const std::string& text, std::optional<double> fraction) { progress.update(text, fraction); });
  } catch (const Error& e) {
    if (exit_code(e.kind()) == exit_code(ErrorKind::Usage)) folder.discard();
    throw;
  }
  progress.finish();
  interrupt.check();
  folder.write_result(outcome.summary);
  if (arguments.json)
    fmt::print("{}\n", dump_line(outcome.summary));
  else
    print_table(outcome.summary);
  return outcome.summary.at("verdict") == "same" ? 0 : 1;
}

}  // namespace

void add_verify_verb(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<TrainingArguments>();
  add_training_options(app, *arguments);
  app.callback([&app, &exit_code, arguments] {
    finish(app, *arguments);
    if (!arguments->split.empty()) {
      throw Error(ErrorKind::Usage, "--split", "is not for verify, which compares every split");
    }
    exit_code = verify(*arguments);
  });
}

}  // namespace batchwright::cli
