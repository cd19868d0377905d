#include "cli/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "base/units.h"
#include "data/prepare.h"
#include "run/devices_runner.h"
#include "run/engine.h"
#include "tune/cache.h"
#include "tune/remedies.h"
#include "tune/splits.h"
#include "tune/token_cuts.h"

namespace batchwright::cli {
namespace {

run::EngineJob trials_job(const TuningPlan& plan, const run::TrainingOptions& options,
                          const std::filesystem::path& folder) {
  run::EngineJob job;
  job.mode = run::JobMode::Trials;
  job.model_folder = plan.input.model_folder.string();
  job.token_file = plan.input.token_file.string();
  job.run_folder = std::filesystem::absolute(folder).string();
  job.options = options;
  return job;
}

// What a step's time and memory follow from: not where the model lies and what the examples say, but the
// model's shape, how long the examples are, this machine and this engine.
Json question_of(const TuningPlan& plan, Json request) {
  for (const char* name : {"model", "model_weights", "data"}) request.erase(name);
  for (const char* name :
       {"steps", "epochs", "learning_rate", "warmup_steps", "schedule", "weight_decay", "adam_beta1",
        "adam_beta2", "adam_epsilon", "seed", "eval_fraction", "save_every", "keep"}) {
    request["options"].erase(name);
  }
  request["lengths"] = data::to_json(plan.input.lengths);
  request["machine"] = tune::machine_key();
  request["engine"] = content_hash(read_file(run::find_engine()));
  return request;
}

// As many as a process of the engine will use at most: --threads, or every core that this process may use.
std::int64_t threads_of(const run::TrainingOptions& options) {
  return options.threads > 0 ? options.threads : usable_cores();
}

std::vector<tune::Remedy> measure_remedies(const TuningPlan& plan, const std::filesystem::path& folder,
                                           const InterruptGuard& interrupt, Progress& progress) {
  const std::filesystem::path scratch = folder / "remedies";
  progress.update("nothing fits: measuring what would");
  return tune::find_remedies(
      plan.options, [&](const run::TrainingOptions& options) -> std::optional<std::int64_t> {
        try {
          run::TrialRunner runner(run::engine_command(trials_job(plan, options, scratch), scratch),
                                  &interrupt);
          run::TrialRequest request;
          request.split = {
              1, std::min(options.effective_batch, std::max<std::int64_t>(2, threads_of(options))), 1};
          request.batch = "longest";
          request.layout = options.layout;
          request.checkpointing = options.checkpointing;
          const run::Trial trial = runner.run(request);
          return trial.outcome == run::Outcome::Measured ? trial.peak_bytes : std::nullopt;
        } catch (const Error& e) {
          if (e.kind() == ErrorKind::Interrupted) throw;
          return std::nullopt;  // a remedy that cannot be measured is not offered
        }
      });
}

// A model that does not even load under the limit is the plainest case of "nothing fits".
tune::Decision nothing_fits(const tune::SearchOptions& search, const std::vector<run::Split>& splits,
                            run::RunFolder& folder, const std::string& why) {
  tune::Decision decision = tune::decide(search, splits, {}, 0, "");
  for (tune::SplitResult& result : decision.trials) result.why_dropped = why;
  decision.reason = "nothing fits: the model itself " + why;
  folder.write_result(tune::to_json(decision));
  return decision;
}

}  // namespace

TuningResult tune_with_engine(const TuningPlan& plan, InterruptGuard& interrupt, Progress& progress) {
  const tune::Candidates candidates =
      tune::candidate_splits(plan.options.effective_batch, plan.devices, plan.allow_inexact);
  for (const std::string& warning : candidates.warnings) progress.note("warning: " + warning);
  Json request = request_of("tune", plan.input, plan.options);
  request["exhaustive"] = plan.exhaustive;
  request["allow_inexact"] = plan.allow_inexact;
  request["micro_tokens"] = plan.micro_tokens;
  request["devices"] = plan.devices;
  run::find_engine();  // before a folder is made
  const tune::TuningCache cache(data::default_cache_folder() / "tune", question_of(plan, request));
  TuningResult result;
  result.folder = plan.run_folder.empty() ? default_run_folder("tune", request) : plan.run_folder;
  run::RunFolder folder(result.folder, std::move(request), plan.overwrite);
  if (!folder.trials().empty()) {
    progress.note(fmt::format("continuing {} with the {} trials it holds (--overwrite starts afresh)",
                              result.folder.string(), folder.trials().size()));
  }
  tune::SearchOptions search;
  search.effective_batch = plan.options.effective_batch;
  search.memory_limit_bytes = plan.options.memory_limit_bytes;
  search.parallel_micro_batches = threads_of(plan.options);
  search.exhaustive = plan.exhaustive;
  search.layout = plan.options.layout;
  search.checkpointing = plan.options.checkpointing;
  // Token cuts are packed: beside another layout they would be an answer that train refuses.
  if (!plan.exhaustive && (plan.options.layout == "auto" || plan.options.layout == "packed")) {
    search.token_cuts =
        plan.micro_tokens > 0
            ? std::vector{run::Split::of_tokens(plan.micro_tokens)}
            : tune::token_cuts(plan.input.lengths.mean, plan.input.lengths.longest, search.effective_batch);
    for (run::Split& cut : search.token_cuts) cut.devices = plan.devices.front();
  }
  const run::EngineJob job = trials_job(plan, plan.options, folder.path());
  run::DevicesRunner runner([&](std::int64_t devices) {
    return std::make_unique<run::TrialRunner>(
        run::engine_command(job, folder.path(), devices), &interrupt,
        [&](const std::string& text, std::optional<double>) { progress.update(text); });
  });
  try {
    tune::TuneOutcome outcome =
        tune::run_tuning(search, candidates.splits, runner, folder, {plan.budget_seconds, &interrupt},
                         progress, plan.use_cache && !plan.overwrite ? &cache : nullptr);
    result.decision = std::move(outcome.decision);
    result.interrupted = outcome.interrupted;
  } catch (const Error& e) {
    if (exit_code(e.kind()) == exit_code(ErrorKind::Usage)) folder.discard();
    if (e.kind() != ErrorKind::OutOfMemory) throw;
    result.decision = nothing_fits(search, candidates.splits, folder, e.message());
  }
  result.document = tune::to_json(result.decision);
  result.document["run_folder"] = result.folder.string();
  result.document["warnings"] = candidates.warnings;
  result.planned_steps = planned_steps(plan.options, plan.input.training_rows);
  result.document["planned_steps"] = *result.planned_steps;
  result.memory_limit_bytes = plan.options.memory_limit_bytes;
  const bool ran_out = result.decision.reason.starts_with("nothing fits");
  if (ran_out && !result.interrupted) {
    Json remedies = Json::array();
    for (const tune::Remedy& remedy : measure_remedies(plan, folder.path(), interrupt, progress)) {
      result.remedies.push_back(fmt::format("It would fit with {} (measured peak {}).", remedy.change,
                                            format_bytes(remedy.peak_bytes)));
      remedies.push_back({{"change", remedy.change}, {"peak_bytes", remedy.peak_bytes}});
    }
    result.document["if_nothing_fits"] = std::move(remedies);
  }
  return result;
}

}  // namespace batchwright::cli
