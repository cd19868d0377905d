#include "cli/script_tuning.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/script_arguments.h"
#include "data/prepare.h"
#include "run/script_runner.h"
#include "tune/cache.h"
#include "tune/splits.h"

namespace batchwright::cli {
namespace {

tune::SearchOptions search_of(const ScriptTuningPlan& plan) {
  tune::SearchOptions search;
  search.effective_batch = plan.effective_batch;
  search.memory_limit_bytes = plan.memory_limit_bytes;
  search.probe_longest = false;
  search.starts_are_dear = true;
  search.exhaustive = plan.exhaustive;
  // A start costs many steps, so each is used for more of them.
  search.warmup_steps = 2;
  search.first_round_steps = 8;
  search.round_steps = 12;
  search.most_rounds = 3;
  return search;
}

}  // namespace

TuningResult tune_script(const ScriptTuningPlan& plan, InterruptGuard& interrupt, Progress& progress) {
  run::check_script(plan.script);
  const tune::Candidates candidates =
      tune::candidate_splits(plan.effective_batch, std::array{plan.devices}, plan.allow_inexact);
  for (const std::string& warning : candidates.warnings) progress.note("warning: " + warning);
  Json request = request_of("tune", plan.script, plan.devices);
  request["exhaustive"] = plan.exhaustive;
  request["allow_inexact"] = plan.allow_inexact;
  request["options"] = {{"effective_batch", plan.effective_batch}, {"memory_limit", plan.memory_limit_bytes}};
  run::ScriptSettings settings;
  settings.script = plan.script;
  settings.memory_limit_bytes = plan.memory_limit_bytes;
  if (plan.script.steps_argument.empty()) use_hook(settings);
  if (plan.memory_limit_bytes > 0) {
    progress.note(
        fmt::format("the memory limit of {} holds for {}", format_bytes(plan.memory_limit_bytes),
                    run::MemoryGroup::create(plan.memory_limit_bytes) != nullptr
                        ? "the resident memory of all processes of a trial together (a control group)"
                        : "the address space of each process (no control group is permitted here)"));
  }
  // What the command's Python would import is part of the question.
  Json key = request;
  key["machine"] = tune::machine_key();
  key["libraries"] = library_versions(plan.script.words);
  const tune::TuningCache cache(data::default_cache_folder() / "tune", std::move(key));
  TuningResult result;
  result.folder = plan.run_folder.empty() ? default_run_folder("tune", request) : plan.run_folder;
  run::RunFolder folder(result.folder, std::move(request), plan.overwrite);
  settings.scratch_root = folder.path() / "scratch";
  settings.log_file = std::filesystem::absolute(folder.log_file());
  if (!folder.trials().empty()) {
    progress.note(fmt::format("continuing {} with the {} trials it holds (--overwrite starts afresh)",
                              result.folder.string(), folder.trials().size()));
  }
  run::ScriptRunner runner(settings, &interrupt,
                           [&](const std::string& text, std::optional<double>) { progress.update(text); });
  try {
    tune::TuneOutcome outcome = tune::run_tuning(search_of(plan), candidates.splits, runner, folder,
                                                 {plan.budget_seconds, &interrupt}, progress,
                                                 plan.use_cache && !plan.overwrite ? &cache : nullptr);
    result.decision = std::move(outcome.decision);
    result.interrupted = outcome.interrupted;
  } catch (const Error& e) {
    std::error_code ignored;
    std::filesystem::remove(settings.scratch_root, ignored);  // only when it is empty
    if (exit_code(e.kind()) == exit_code(ErrorKind::Usage)) folder.discard();
    throw;
  }
  std::error_code ignored;
  std::filesystem::remove(settings.scratch_root, ignored);
  result.document = tune::to_json(result.decision);
  result.document["run_folder"] = result.folder.string();
  result.document["warnings"] = candidates.warnings;
  result.memory_limit_bytes = plan.memory_limit_bytes;
  return result;
}

}  // namespace batchwright::cli
