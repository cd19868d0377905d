#include "run/script_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"
#include "run/private_folder.h"

namespace batchwright::run {
namespace {

using Kind = Worker::Event::Kind;

}  // namespace

// Removed with all that a trial wrote, whatever happens.
struct ScriptRunner::Scratch {
  std::filesystem::path path;
  // TMPDIR of the trial. Not below `path`: Python's multiprocessing puts sockets there, whose paths hold 108
  // bytes.
  PrivateFolder temporary;

  explicit Scratch(std::filesystem::path folder) : path(std::move(folder)) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

namespace {

// What a trial needed of its limit. Of one process both counts are at least that: what was resident holds
// file pages that others were charged for, and a group holds pages that the kernel could give up. Of several,
// what one of them had resident says nothing.
std::int64_t needed_bytes(const Worker& worker, std::int64_t resident_bytes, bool one_process) {
  const auto group = worker.group_peak_bytes();
  if (!group) return resident_bytes;
  return one_process ? std::min(*group, resident_bytes) : *group;
}

// How long one run took, or why it did not end well.
struct TimedRun {
  double seconds = 0;
  std::int64_t peak_bytes = 0;
  std::optional<Failure> failure;
};

TimedRun time_run(const WorkerCommand& command, const InterruptGuard* interrupt, double limit_seconds) {
  const double begin = steady_seconds();
  Worker worker(command, interrupt);
  TimedRun run;
  const double deadline = begin + limit_seconds;
  while (true) {
    const Worker::Event event = worker.next(std::max(0.001, deadline - steady_seconds()));
    if (event.kind == Kind::Said && steady_seconds() < deadline) continue;
    run.seconds = steady_seconds() - begin;
    Failure failure = worker.failure();
    run.peak_bytes = needed_bytes(worker, worker.peak_resident_bytes(), true);
    if (event.kind == Kind::Exited && failure.exit_code == 0) return run;
    if (event.kind != Kind::Exited) {
      failure.outcome = Outcome::TimedOut;
      failure.reason = fmt::format("did not end within {}", format_seconds(limit_seconds));
    }
    run.failure = std::move(failure);
    return run;
  }
}

Error saw_no_step(const std::string& program) {
  return Error(
      ErrorKind::Unsupported, program, "ended without a torch optimizer step that could be seen",
      "For a script without torch, tune takes --steps-arg, the option that sets its number of steps");
}

}  // namespace

ScriptRunner::ScriptRunner(ScriptSettings settings, const InterruptGuard* interrupt, OnProgress on_progress,
                           Patience patience)
    : settings_(std::move(settings)),
      interrupt_(interrupt),
      on_progress_(std::move(on_progress)),
      patience_(patience) {
  std::error_code ignored;
  std::filesystem::remove_all(settings_.scratch_root, ignored);  // left by a run that was killed
}

std::filesystem::path ScriptRunner::fresh_scratch() {
  const std::filesystem::path path = settings_.scratch_root / fmt::format("trial-{}", ++trials_);
  std::filesystem::create_directories(path);
  return std::filesystem::absolute(path);
}

WorkerCommand ScriptRunner::command_of(const TrialRequest& request, const Scratch& scratch,
                                       std::int64_t steps) const {
  const ScriptInvocation invocation =
      prepare_invocation(settings_.script, {request.split, scratch.path, steps});
  WorkerCommand command;
  command.command = invocation.words;
  command.environment = invocation.environment;
  command.environment["TMPDIR"] = scratch.temporary.path().string();
  // What is compiled once serves every trial.
  if (std::getenv("TORCHINDUCTOR_CACHE_DIR") == nullptr)
    command.environment["TORCHINDUCTOR_CACHE_DIR"] =
        (std::filesystem::temp_directory_path() / fmt::format("torchinductor_{}", ::getuid())).string();
  command.environment["BATCHWRIGHT_STEPS"] = std::to_string(request.warmup_steps + request.steps);
  command.log_file = settings_.log_file;
  command.memory_limit_bytes = settings_.memory_limit_bytes;
  if (!settings_.hook_folder.empty()) {
    const char* inherited = std::getenv("PYTHONPATH");
    command.environment["PYTHONPATH"] =
        settings_.hook_folder.string() + ":" + settings_.hook_folder.parent_path().parent_path().string() +
        (inherited != nullptr && *inherited != '\0' ? std::string(":") + inherited : std::string());
    if (!settings_.hook_recorder.empty())
      command.environment["BATCHWRIGHT_RECORDER"] = settings_.hook_recorder.string();
  }
  return command;
}

Trial ScriptRunner::run(const TrialRequest& request) {
  return settings_.script.steps_argument.empty() ? run_with_hook(request) : run_at_two_lengths(request);
}

double ScriptRunner::silence_limit(bool said_hello) const {
  if (!said_hello) return patience_.start_seconds;
  if (slowest_step_seconds_ <= 0) return patience_.first_step_seconds;
  return std::max(patience_.least_seconds, patience_.slowest_factor * slowest_step_seconds_);
}

Trial ScriptRunner::run_with_hook(const TrialRequest& request) {
  const double begin = steady_seconds();
  const Scratch scratch{fresh_scratch()};
  const std::int64_t steps = request.warmup_steps + request.steps;
  TrialRecord record(request);
  double first_step_at = 0;
  Worker worker(command_of(request, scratch, 0), interrupt_);
  const auto finish = [&](Outcome outcome, const std::string& reason) {
    Trial trial = record.finish(outcome, reason);
    if (trial.peak_bytes)
      trial.peak_bytes = needed_bytes(worker, *trial.peak_bytes, request.split.devices == 1);
    trial.wall_seconds = steady_seconds() - begin;
    trial.startup_seconds = first_step_at > 0 ? first_step_at - begin : trial.wall_seconds;
    return trial;
  };
  bool said_hello = false;
  while (!record.complete()) {
    const double limit = silence_limit(said_hello);
    const Worker::Event event = worker.next(limit);
    if (event.kind == Kind::Garbage)
      return finish(Outcome::Crashed, "spoke what is not the protocol: " + event.error);
    if (event.kind == Kind::Silent) {
      return finish(Outcome::TimedOut, fmt::format("no step for {}", format_seconds(limit)));
    }
    if (event.kind == Kind::Exited) {
      const Failure failure = worker.failure();
      if (failure.exit_code != 0) return finish(failure.outcome, failure.reason);
      if (!said_hello) throw saw_no_step(settings_.script.words.front());
      return finish(Outcome::Rejected,
                    fmt::format("ended after {} of the {} optimizer steps that a trial needs",
                                record.steps_seen(), steps));
    }
    if (const auto* hello = std::get_if<Hello>(&event.message)) {
      if (hello->protocol != kProtocolVersion) throw version_error("the hook", hello->protocol);
      if (hello->rank == 0) hello_ = *hello;
      said_hello = true;
    } else if (const auto* step = std::get_if<StepReport>(&event.message)) {
      if (step->rank != 0) continue;
      if (first_step_at == 0) first_step_at = steady_seconds();
      record.add(*step);
      slowest_step_seconds_ = std::max(slowest_step_seconds_, record.slowest_step_seconds());
      if (on_progress_) {
        on_progress_(fmt::format("{}: step {} of {}", to_string(request.split), record.steps_seen(), steps),
                     static_cast<double>(record.steps_seen()) / static_cast<double>(steps));
      }
    } else if (const auto* failed = std::get_if<Failed>(&event.message)) {
      const bool memory = failed->kind == "out_of_memory";
      return finish(memory                       ? Outcome::OutOfMemory
                    : failed->kind == "rejected" ? Outcome::Rejected
                                                 : Outcome::Crashed,
                    failed->message);
    }
  }
  return finish(Outcome::Measured, "");
}

ObservedRun ScriptRunner::observe(const Split& split, std::int64_t steps, bool keep_dropout) {
  const Scratch scratch{fresh_scratch()};
  TrialRequest request;
  request.split = split;
  request.steps = steps;
  WorkerCommand command = command_of(request, scratch, 0);
  command.environment["BATCHWRIGHT_EVIDENCE"] = std::string("1");
  command.environment["BATCHWRIGHT_DROPOUT"] = std::string(keep_dropout ? "on" : "off");
  ObservedRun seen;
  seen.split = split;
  std::map<std::int64_t, std::map<int, StepReport>> reports;
  std::size_t ranks = 1;
  const auto complete = [&](std::int64_t step) { return reports[step].size() >= ranks; };
  const auto finish = [&](Outcome outcome, const std::string& reason) {
    seen.outcome = outcome;
    seen.reason = reason;
    for (std::int64_t step = 1; step <= steps && complete(step); ++step) seen.steps.push_back(reports[step]);
    return seen;
  };
  Worker worker(command, interrupt_);
  while (!complete(steps)) {
    const double limit = silence_limit(!seen.framework.empty());
    const Worker::Event event = worker.next(limit);
    if (event.kind == Kind::Garbage)
      return finish(Outcome::Crashed, "spoke what is not the protocol: " + event.error);
    if (event.kind == Kind::Silent)
      return finish(Outcome::TimedOut, fmt::format("no step for {}", format_seconds(limit)));
    if (event.kind == Kind::Exited) {
      const Failure failure = worker.failure();
      if (failure.exit_code != 0) return finish(failure.outcome, failure.reason);
      if (seen.framework.empty()) throw saw_no_step(settings_.script.words.front());
      break;  // it trains for fewer steps: what there is can be compared
    }
    if (const auto* hello = std::get_if<Hello>(&event.message)) {
      if (hello->protocol != kProtocolVersion) throw version_error("the hook", hello->protocol);
      seen.framework = hello->framework;
      ranks = static_cast<std::size_t>(hello->world_size);
    } else if (const auto* step = std::get_if<StepReport>(&event.message)) {
      reports[step->step][step->rank] = *step;
      slowest_step_seconds_ = std::max(slowest_step_seconds_, step->seconds);
      if (on_progress_)
        on_progress_(fmt::format("{}: step {} of {}", to_string(split), step->step, steps), std::nullopt);
    }
  }
  return finish(Outcome::Measured, "");
}

// What two runs share (start-up, loading, saving) cancels in the difference of their times.
Trial ScriptRunner::run_at_two_lengths(const TrialRequest& request) {
  const double begin = steady_seconds();
  Trial trial;
  trial.request = request;
  const std::int64_t short_steps = std::max<std::int64_t>(1, request.warmup_steps);
  const std::int64_t long_steps = short_steps + request.steps;
  TimedRun runs[2];
  for (int i = 0; i < 2; ++i) {
    const std::int64_t steps = i == 0 ? short_steps : long_steps;
    if (on_progress_)
      on_progress_(fmt::format("{}: a run of {} steps", to_string(request.split), steps), std::nullopt);
    const Scratch scratch{fresh_scratch()};
    runs[i] = time_run(command_of(request, scratch, steps), interrupt_, patience_.first_step_seconds);
    if (runs[i].failure) break;
  }
  trial.wall_seconds = steady_seconds() - begin;
  const auto& failure = runs[0].failure ? runs[0].failure : runs[1].failure;
  const double seconds = (runs[1].seconds - runs[0].seconds) / static_cast<double>(request.steps);
  if (failure) {
    trial.outcome = failure->outcome;
    trial.reason = failure->reason;
  } else if (!(seconds > 0)) {
    trial.outcome = Outcome::Rejected;
    trial.reason = fmt::format(
        "a run of {} steps took {} and one of {} steps {}: the steps do not show in the time", short_steps,
        format_seconds(runs[0].seconds), long_steps, format_seconds(runs[1].seconds));
  } else {
    trial.outcome = Outcome::Measured;
    trial.steps = {{request.first_step, seconds, 0, 0}};
    trial.peak_bytes = std::max(runs[0].peak_bytes, runs[1].peak_bytes);
    trial.startup_seconds = 2 * std::max(0.0, runs[0].seconds - static_cast<double>(short_steps) * seconds);
  }
  return trial;
}

}  // namespace batchwright::run
