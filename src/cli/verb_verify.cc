#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/table.h"
#include "cli/prepared_input.h"
#include "cli/script_arguments.h"
#include "cli/script_verification.h"
#include "cli/training_arguments.h"
#include "cli/verbs.h"
#include "run/engine.h"
#include "run/run_folder.h"
#include "run/training.h"

namespace batchwright::cli {
namespace {

std::string name_of_cut(const Json& row) {
  if (row.at("micro_tokens").is_number()) {
    return run::to_string(run::Split::of_tokens(row.at("micro_tokens").get<std::int64_t>()));
  }
  return run::to_string(
      {row.at("micro_batch").get<std::int64_t>(), row.at("accumulation_steps").get<std::int64_t>(), 1, 0});
}

// What the rows of one cut say together: a person looks at 54 rows only when something is wrong.
struct CutSummary {
  std::string name;
  std::int64_t same = 0, different = 0, out_of_memory = 0;
  double worst = -1;
  std::string worst_tensor, worst_mode;

  void add(const Json& row) {
    const std::string verdict = row.at("verdict").get<std::string>();
    ++(verdict == "same" ? same : verdict == "different" ? different : out_of_memory);
    const Json& difference = row.at("max_relative_gradient_difference");
    if (!difference.is_number() || !(difference.get<double>() > worst)) return;
    worst = difference.get<double>();
    worst_tensor = row.at("worst_tensor").is_string() ? row.at("worst_tensor").get<std::string>() : "";
    worst_mode = fmt::format("{}, checkpointing {}", row.at("layout").get<std::string>(),
                             row.at("checkpointing").get<std::string>());
  }
  std::string verdict() const {
    if (different > 0) return fmt::format("{} DIFFER", different);
    return same > 0 ? "same" : "out of memory";
  }
};

std::vector<CutSummary> by_cut(const Json& rows) {
  std::vector<CutSummary> cuts;
  for (const Json& row : rows) {
    if (const std::string name = name_of_cut(row); cuts.empty() || cuts.back().name != name) {
      cuts.emplace_back().name = name;
    }
    cuts.back().add(row);
  }
  return cuts;
}

void print_table(const Json& result) {
  Table table({{"cut", Align::Left},
               {"ways"},
               {"verdict", Align::Left},
               {"gradient difference"},
               {"worst tensor", Align::Left},
               {"worst way", Align::Left}});
  double worst = 0;
  std::int64_t compared = 0;
  for (const CutSummary& cut : by_cut(result.at("splits"))) {
    worst = std::max(worst, cut.worst);
    compared += cut.same + cut.different;
    table.add_row({cut.name, std::to_string(cut.same + cut.different + cut.out_of_memory), cut.verdict(),
                   cut.worst >= 0 ? fmt::format("{:.1e}", cut.worst) : "-", cut.worst_tensor,
                   cut.worst_mode});
  }
  const bool same = result.at("verdict") == "same";
  fmt::print(
      "{}\n{}: {} ways to cut the same effective batch (layouts and checkpointing of each cut), largest "
      "gradient "
      "difference {:.1e} (at most {:.0e}). --json lists every way.\n",
      table.to_string(), same ? "The same gradient" : "The gradient DIFFERS", compared, worst,
      result.at("tolerance").get<double>());
}

struct VerifyArguments {
  TrainingArguments training;
  ScriptArguments script;  // for a command of the user's
  bool keep_dropout = false;
};

int verify_command(const VerifyArguments& arguments, bool steps_given) {
  const TrainingArguments& training = arguments.training;
  ScriptVerificationPlan plan;
  plan.script = script_command(training, arguments.script);
  plan.effective_batch = training.options.effective_batch;
  plan.devices = one_device_count(arguments.script.devices);
  if (steps_given) plan.steps = training.options.steps.value_or(plan.steps);
  plan.memory_limit_bytes = training.options.memory_limit_bytes;
  if (!training.split.empty()) plan.split = run::parse_split(training.split, "--split");
  plan.keep_dropout = arguments.keep_dropout;
  plan.overwrite = training.overwrite;
  plan.run_folder = training.run_folder;
  const InterruptGuard interrupt;
  Progress progress(stderr, training.quiet ? Progress::Style::Silent : Progress::style_of(stderr));
  const ScriptVerification result = verify_script(plan, interrupt, progress);
  progress.finish();
  if (training.json)
    fmt::print("{}\n", dump_line(result.document));
  else
    fmt::print("{}", describe(result));
  return result.equivalence.verdict == tune::Equivalent::Same ? 0 : exit_code(ErrorKind::No);
}

int verify_model(const TrainingArguments& arguments) {
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
  auto arguments = std::make_shared<VerifyArguments>();
  add_training_options(app, arguments->training);
  add_script_options(app, arguments->script);
  app.add_flag("--keep-dropout", arguments->keep_dropout);
  app.callback([&app, &exit_code, arguments] {
    finish(app, arguments->training);
    if (arguments->training.has_command) {
      refuse_training_options(app, {"split", "steps", "keep-dropout"});
      exit_code = verify_command(*arguments, app.count("--steps") > 0);
      return;
    }
    refuse_script_options(app, {"--devices", "--set-in", "--online", "--keep-dropout"});
    for (const char* name : {"--split", "--micro-tokens"}) {
      if (app.count(name) > 0)
        throw Error(ErrorKind::Usage, name, "is not for verify, which compares every cut");
    }
    if (arguments->training.options.precision != "fp32") {
      throw Error(ErrorKind::Usage, "--precision",
                  "is fp32 for verify: how 16-bit numbers round depends on the cut");
    }
    exit_code = verify_model(arguments->training);
  });
}

}  // namespace batchwright::cli
