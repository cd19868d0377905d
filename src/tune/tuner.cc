#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "tune/device_calibration.h"
#include "tune/timing.h"
#include "tune/token_cuts.h"

namespace batchwright::tune {
namespace {

bool measured(const run::Trial& trial) {
  return trial.outcome == run::Outcome::Measured && trial.request.batch == "sampled";
}

// Seconds that a trial will take, from what a step of its split (or of the slowest measured one) took before;
// 0 when nothing is known.
double expected_seconds(const run::TrialRequest& request, std::span<const run::Trial> trials) {
  double own = 0, any = 0;
  for (const run::Trial& trial : trials) {
    if (!measured(trial)) continue;
    for (const run::TimedStep& step : trial.steps) {
      any = std::max(any, step.seconds);
      if (trial.request.split == request.split) own = std::max(own, step.seconds);
    }
  }
  return static_cast<double>(request.warmup_steps + request.steps) * (own > 0 ? own : any);
}

std::string describe(const run::Trial& trial) {
  const std::string name = run::to_string(trial.request.split);
  const std::string batch = trial.request.batch == "longest" ? " on the longest examples" : "";
  if (trial.outcome != run::Outcome::Measured) {
    return fmt::format("{}{}: {} ({})", name, batch, run::outcome_words(trial.outcome), trial.reason);
  }
  std::vector<double> seconds;
  for (const run::TimedStep& step : trial.steps) seconds.push_back(step.seconds);
  std::string text = fmt::format("{}{}: {} a step", name, batch, format_seconds(median(seconds)));
  if (trial.peak_bytes) text += fmt::format(", peak {}", format_bytes(*trial.peak_bytes));
  return text;
}

Json facts_of(const run::Workload& workload) {
  const auto hello = workload.hello();
  if (!hello) return Json::object();
  return {{"framework", hello->framework}, {"device", hello->device}};
}

double seconds_of(std::span<const run::Trial> trials) {
  double sum = 0;
  for (const run::Trial& trial : trials) sum += trial.wall_seconds;
  return sum;
}

struct NextTrial {
  std::optional<run::TrialRequest> request;
  bool is_extra = false;  // of the token cuts
};

NextTrial next_trial(const SearchOptions& options, std::span<const run::Split> splits,
                     std::span<const run::Trial> trials) {
  const SearchState state = search_state(options, splits, trials);
  if (state.next || !state.winner || options.token_cuts.empty()) return {state.next};
  return {next_token_cut_trial(options, splits[*state.winner], trials), true};
}

void answer_from(const TuningCache& cache, run::RunFolder& folder, Progress& progress) {
  if (!folder.trials().empty()) return;
  const auto answer = cache.find();
  if (!answer) return;
  for (const run::Trial& trial : answer->trials) folder.append(trial);
  if (answer->facts.is_object()) folder.set_facts(answer->facts);
  progress.note(
      fmt::format("this question was answered on {}: its {} trials are taken from the cache (--no-cache "
                  "measures again)",
                  answer->when, answer->trials.size()));
}

}  // namespace

TuneOutcome run_tuning(const SearchOptions& options, std::span<const run::Split> splits,
                       run::Workload& workload, run::RunFolder& folder, const TuneLimits& limits,
                       Progress& progress, const TuningCache* cache, std::function<double()> clock) {
  if (!clock) clock = steady_seconds;
  const double begin = clock();
  if (cache != nullptr) answer_from(*cache, folder, progress);
  // What an earlier part of this run took counts as tuning time, but not against this command's budget.
  const double earlier = seconds_of(folder.trials());
  TuneOutcome outcome;
  std::string stopped_because;
  // Token cuts are an extra: without them the choice is no less settled.
  const auto out_of_budget = [&](bool is_extra) {
    if (!is_extra)
      stopped_because = fmt::format("the budget of {} ends", format_seconds(*limits.budget_seconds));
  };
  while (true) {
    const NextTrial next = next_trial(options, splits, folder.trials());
    if (!next.request) break;
    if (limits.budget_seconds && std::ranges::any_of(folder.trials(), measured)) {
      const double left = *limits.budget_seconds - (clock() - begin);
      if (expected_seconds(*next.request, folder.trials()) > left) {
        out_of_budget(next.is_extra);
        break;
      }
      if (limits.guard != nullptr) limits.guard->stop_at(steady_seconds() + left);
    }
    try {
      const run::Trial trial = workload.run(*next.request);
      folder.append(trial);
      if (const Json facts = facts_of(workload); !facts.empty()) folder.set_facts(facts);
      progress.note(describe(trial));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Interrupted) throw;
      if (limits.guard != nullptr && limits.guard->stops_at() && !limits.guard->requested()) {
        out_of_budget(next.is_extra);
        break;
      }
      outcome.interrupted = true;
      if (!next.is_extra) stopped_because = "it was interrupted";
      break;
    }
  }
  if (limits.guard != nullptr) limits.guard->stop_at(std::nullopt);
  const std::optional<hardware::Calibration> calibration = calibration_for(folder.facts());
  outcome.decision = decide(options, splits, folder.trials(), earlier + clock() - begin, stopped_because,
                            calibration ? &*calibration : nullptr);
  folder.write_result(to_json(outcome.decision));
  if (cache != nullptr && outcome.decision.recommended && stopped_because.empty())
    cache->store(folder.trials(), folder.facts());
  return outcome;
}

}  // namespace batchwright::tune
