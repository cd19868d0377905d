#include "cli/script_tuning.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "data/python.h"
#include "run/script_runner.h"
#include "tune/splits.h"

namespace batchwright::cli {
namespace {

std::filesystem::path hook_folder() {
  const std::filesystem::path folder = data::python_folder() / "batchwright" / "hook";
  if (!std::filesystem::exists(folder / "sitecustomize.py")) {
    throw Error(ErrorKind::NotFound, folder.string(), "does not hold the hook for training scripts",
                "Install the Python package batchwright beside this program");
  }
  return folder;
}

// Everything that decides what the command computes and that we can see: the same request continues the same
// run.
Json request_of(const ScriptTuningPlan& plan) {
  Json edits = Json::array(), files = Json::object();
  for (const run::ConfigEdit& edit : plan.script.edits)
    edits.push_back({edit.file.string(), edit.key, edit.value});
  constexpr std::int64_t kMostHashedBytes = 4 << 20;  // scripts and configurations, not data
  for (const std::string& word : plan.script.words) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(word, error)) continue;
    if (std::filesystem::file_size(word, error) > static_cast<std::uintmax_t>(kMostHashedBytes)) continue;
    files[word] = content_hash(read_file(word));
  }
  return {
      {"verb", "tune"},
      {"command", plan.script.words},
      {"set_in", std::move(edits)},
      {"steps_arg", plan.script.steps_argument},
      {"online", plan.script.online},
      {"working_folder", std::filesystem::current_path().string()},
      {"files", std::move(files)},
      {"devices", plan.devices},
      {"exhaustive", plan.exhaustive},
      {"allow_inexact", plan.allow_inexact},
      {"options", {{"effective_batch", plan.effective_batch}, {"memory_limit", plan.memory_limit_bytes}}}};
}

tune::SearchOptions search_of(const ScriptTuningPlan& plan) {
  tune::SearchOptions search;
  search.effective_batch = plan.effective_batch;
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

TuningResult tune_script(const ScriptTuningPlan& plan, const InterruptGuard& interrupt, Progress& progress) {
  run::check_script(plan.script);
  const tune::Candidates candidates =
      tune::candidate_splits(plan.effective_batch, std::array{plan.devices}, plan.allow_inexact);
  for (const std::string& warning : candidates.warnings) progress.note("warning: " + warning);
  Json request = request_of(plan);
  run::ScriptSettings settings;
  settings.script = plan.script;
  settings.address_space_bytes = plan.memory_limit_bytes;
  if (plan.script.steps_argument.empty()) settings.hook_folder = hook_folder();
  if (plan.memory_limit_bytes > 0) {
    progress.note(fmt::format("the memory limit of {} holds for the address space of each process",
                              format_bytes(plan.memory_limit_bytes)));
  }
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
    tune::TuneOutcome outcome =
        tune::run_tuning(search_of(plan), candidates.splits, runner, folder, {plan.budget_seconds}, progress);
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
  return result;
}

}  // namespace batchwright::cli
