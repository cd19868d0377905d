#include "cli/script_verification.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "base/table.h"
#include "base/units.h"
#include "cli/prepared_input.h"
#include "cli/script_arguments.h"
#include "run/run_folder.h"
#include "tune/splits.h"

namespace batchwright::cli {
namespace {

using tune::Equivalent;

// Runs what is compared: the largest micro-batch that runs as the reference, then the others.
std::vector<run::ObservedRun> observe_splits(const ScriptVerificationPlan& plan, run::ScriptRunner& runner,
                                             Progress& progress) {
  const auto candidates =
      tune::candidate_splits(plan.effective_batch, std::array{plan.devices}, false).splits;
  std::vector<run::ObservedRun> runs;
  const auto observe = [&](const run::Split& split) {
    runs.push_back(runner.observe(split, plan.steps, plan.keep_dropout));
    const run::ObservedRun& run = runs.back();
    progress.note(fmt::format(
        "{}: {}", run::to_string(split),
        run.outcome == run::Outcome::Measured ? fmt::format("{} steps", run.steps.size()) : run.reason));
    return run.outcome == run::Outcome::Measured;
  };
  for (const run::Split& split : candidates) {
    if (observe(split)) break;
    if (runs.back().outcome != run::Outcome::OutOfMemory) return runs;  // the next would fail alike
  }
  for (const run::Split& split : tune::splits_to_compare(candidates, runs.back().split, plan.split))
    observe(split);
  return runs;
}

std::string cell(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.4g}", *value) : "";
}

std::string first(const std::vector<double>& values) { return values.empty() ? "" : cell(values.front()); }

std::string words_of(Equivalent verdict) {
  return verdict == Equivalent::Same        ? "same"
         : verdict == Equivalent::Different ? "DIFFERENT"
                                            : "cannot tell";
}

std::string headline(const tune::Equivalence& equivalence) {
  switch (equivalence.verdict) {
    case Equivalent::Same:
      return "Equivalent in the steps that were compared: every split that was run trains alike. More "
             "--steps than "
             "an epoch has compare its last, partial window too.";
    case Equivalent::Different:
      return "NOT equivalent: how the batch is cut changes what is learnt.";
    case Equivalent::CannotTell:
      return "Cannot tell whether the splits are equivalent.";
  }
  return "";
}

}  // namespace

ScriptVerification verify_script(const ScriptVerificationPlan& plan, const InterruptGuard& interrupt,
                                 Progress& progress) {
  run::check_script(plan.script);
  tune::candidate_splits(plan.effective_batch, std::array{plan.devices},
                         false);  // refuses what cannot be cut
  Json request = request_of("verify", plan.script, plan.devices);
  request["options"] = {{"effective_batch", plan.effective_batch}, {"steps", plan.steps}};
  ScriptVerification result;
  result.folder =
      plan.run_folder.empty() ? run::unused_folder(default_run_folder("verify", request)) : plan.run_folder;
  run::ScriptSettings settings;
  settings.script = plan.script;
  settings.memory_limit_bytes = plan.memory_limit_bytes;
  use_hook(settings);
  run::RunFolder folder(result.folder, std::move(request), plan.overwrite);
  settings.scratch_root = folder.path() / "scratch";
  settings.log_file = std::filesystem::absolute(folder.log_file());
  run::ScriptRunner runner(settings, &interrupt,
                           [&](const std::string& text, std::optional<double>) { progress.update(text); });
  std::string framework;
  try {
    const std::vector<run::ObservedRun> runs = observe_splits(plan, runner, progress);
    result.equivalence = tune::compare_runs(runs);
    const auto reference = std::find_if(runs.begin(), runs.end(), [](const run::ObservedRun& run) {
      return run.outcome == run::Outcome::Measured;
    });
    if (result.equivalence.needs_repeat && reference != runs.end()) {
      progress.note(fmt::format("{} once more, to see whether the script repeats itself",
                                run::to_string(reference->split)));
      const run::ObservedRun repeat = runner.observe(reference->split, plan.steps, plan.keep_dropout);
      result.equivalence = tune::compare_runs(runs, &repeat);
    }
    if (reference != runs.end()) framework = reference->framework;
  } catch (const Error& e) {
    std::error_code ignored;
    std::filesystem::remove(settings.scratch_root, ignored);
    if (exit_code(e.kind()) == exit_code(ErrorKind::Usage)) folder.discard();
    throw;
  }
  std::error_code ignored;
  std::filesystem::remove(settings.scratch_root, ignored);
  Json splits = Json::array();
  for (const tune::SplitComparison& split : result.equivalence.splits) splits.push_back(tune::to_json(split));
  result.document = {{"version", 1},
                     {"splits", std::move(splits)},
                     {"verdict", tune::equivalent_name(result.equivalence.verdict)},
                     {"dropout", plan.keep_dropout ? "as the script has it" : "turned off"},
                     {"framework", framework},
                     {"run_folder", result.folder.string()}};
  folder.write_result(result.document);
  return result;
}

std::string describe(const ScriptVerification& verification) {
  Table table({{"split", Align::Left},
               {"loss of step 1"},
               {"gradient norm"},
               {"factor"},
               {"verdict", Align::Left},
               {"mistake", Align::Left}});
  std::string sentences, fixes;
  for (const tune::SplitComparison& split : verification.equivalence.splits) {
    const std::string name = run::to_string(split.split);
    table.add_row({name, first(split.losses), first(split.gradient_norms),
                   split.is_reference ? "1" : cell(split.gradient_factor), words_of(split.verdict),
                   split.kind});
    sentences += fmt::format("{}: {}.\n", name, split.why);
    if (!split.fix.empty() && fixes.find(split.fix) == std::string::npos)
      fixes += fmt::format("To mend it: {}.\n", split.fix);
  }
  return fmt::format("{}\n{}\n{}{}", table.to_string(), headline(verification.equivalence), sentences, fixes);
}

}  // namespace batchwright::cli
