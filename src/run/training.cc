#include "run/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace batchwright::run {
namespace {

using Kind = Worker::Event::Kind;

constexpr double kSaveSeconds = 120;  // for a worker that was asked to stop

[[noreturn]] void fail(Worker& worker, const Worker::Event& event, const WorkerCommand& command,
                       double waited) {
  const Failure failure = worker.failure();
  const std::string program = command.command.front();
  const std::string hint = fmt::format("Its output is in {}", command.log_file.string());
  if (event.kind == Kind::Garbage) {
    throw Error(ErrorKind::Internal, program, "spoke what is not the protocol: " + event.error, hint);
  }
  if (event.kind == Kind::Silent) {
    throw Error(ErrorKind::Internal, program, fmt::format("no sign of life for {}", format_seconds(waited)),
                hint);
  }
  if (failure.outcome == Outcome::OutOfMemory)
    throw Error(ErrorKind::OutOfMemory, "training", failure.reason);
  // What the engine says before it can speak the protocol; another program's exit code means nothing here.
  const bool own = failure.last_line.starts_with("batchwright-engine: ");
  if (own && (failure.exit_code == 1 || failure.exit_code == 2)) {
    throw Error(failure.exit_code == 2 ? ErrorKind::InvalidInput : ErrorKind::No, "",
                own_words(failure.last_line));
  }
  throw Error(ErrorKind::Internal, program, failure.reason, hint);
}

[[noreturn]] void fail(Worker& worker, const Failed& failed, const WorkerCommand& command, bool loaded) {
  if (failed.kind == kLostPeer) {
    // A rank that was killed cannot say so: its process's end does, and the others' word names it at least.
    const Failure failure = worker.failure();
    if (failure.outcome == Outcome::OutOfMemory)
      throw Error(ErrorKind::OutOfMemory, "training", failure.reason);
    const bool killed = worker.failed_rank().has_value() && !failure.exit_code.has_value();
    throw Error(ErrorKind::Internal, "training",
                killed ? fmt::format("{} ({})", failure.reason, failed.message) : failed.message,
                fmt::format("Its output is in {}", command.log_file.string()));
  }
  if (failed.kind == "out_of_memory" && !loaded) {
    throw Error(ErrorKind::OutOfMemory, "the model itself", "does not fit: " + failed.message,
                "No split changes that: it needs more memory");
  }
  if (failed.kind == "out_of_memory") {
    throw Error(ErrorKind::OutOfMemory, "training", "ran out of memory: " + failed.message,
                "Choose a smaller micro-batch, or --split auto, which finds one that fits");
  }
  throw error_of(failed);
}

}  // namespace

TrainingOutcome run_training(const WorkerCommand& command, const InterruptGuard& interrupt,
                             const std::function<void(const StepReport&)>& on_step,
                             const OnProgress& on_progress, Patience patience) {
  TrainingOutcome outcome;
  Worker worker(command, &interrupt);
  double limit = patience.start_seconds, slowest = 0;
  bool loaded = false;
  while (true) {
    Worker::Event event;
    try {
      event = worker.next(limit);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Interrupted || !worker.send(Stop{})) throw;
      outcome.interrupted = true;
      worker.ignore_interrupts();
      limit = kSaveSeconds;
      on_progress("stopping after this step", std::nullopt);
      continue;
    }
    if (event.kind != Kind::Said) fail(worker, event, command, limit);
    if (const auto* step = std::get_if<StepReport>(&event.message)) {
      if (step->rank != 0) continue;
      slowest = std::max(slowest, step->seconds);
      limit = std::max(patience.least_seconds, patience.slowest_factor * slowest);
      on_step(*step);
    } else if (const auto* note = std::get_if<Note>(&event.message)) {
      on_progress(note->text, note->fraction);
    } else if (const auto* hello = std::get_if<Hello>(&event.message)) {
      if (hello->protocol != kProtocolVersion) throw version_error(command.command.front(), hello->protocol);
      loaded = true;
      limit = patience.first_step_seconds;
    } else if (const auto* failed = std::get_if<Failed>(&event.message)) {
      fail(worker, *failed, command, loaded);
    } else if (const auto* done = std::get_if<Done>(&event.message)) {
      outcome.summary = done->result;
      worker.stop(kSaveSeconds);
      return outcome;
    }
  }
}

}  // namespace batchwright::run
