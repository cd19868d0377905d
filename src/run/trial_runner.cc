#include "run/trial_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/units.h"

namespace batchwright::run {
namespace {

using Kind = Worker::Event::Kind;

Outcome outcome_of(const Failed& failed) {
  if (failed.kind == "out_of_memory") return Outcome::OutOfMemory;
  if (failed.kind == "rejected") return Outcome::Rejected;
  return Outcome::Crashed;
}

constexpr int kMostFailedStarts = 2;
constexpr double kStopSeconds = 10;

}  // namespace

std::string own_words(std::string line) {
  constexpr std::string_view kPrefix = "batchwright-engine: ";
  if (line.starts_with(kPrefix)) line.erase(0, kPrefix.size());
  return line;
}

Error error_of(const Failed& failed) {
  for (const ErrorKind kind : {ErrorKind::Usage, ErrorKind::InvalidInput, ErrorKind::NotFound,
                               ErrorKind::Unsupported, ErrorKind::No, ErrorKind::OutOfMemory}) {
    if (error_kind_name(kind) == failed.kind) return Error(kind, "", failed.message);
  }
  return Error(ErrorKind::Internal, "", failed.message);
}

Error version_error(const std::string& program, int protocol) {
  return Error(ErrorKind::Unsupported, program,
               fmt::format("speaks version {} of the protocol, and this program version {}", protocol,
                           kProtocolVersion),
               "Install both programs from the same release");
}

TrialRunner::TrialRunner(WorkerCommand command, const InterruptGuard* interrupt, OnProgress on_progress,
                         Patience patience)
    : command_(std::move(command)),
      interrupt_(interrupt),
      on_progress_(std::move(on_progress)),
      patience_(patience) {}

TrialRunner::~TrialRunner() {
  if (worker_) worker_->stop(kStopSeconds);
}

void TrialRunner::show(const std::string& text, std::optional<double> fraction) {
  if (on_progress_) on_progress_(text, fraction);
}

double TrialRunner::silence_limit() const {
  if (slowest_step_seconds_ <= 0) return patience_.first_step_seconds;
  return std::max(patience_.least_seconds, patience_.slowest_factor * slowest_step_seconds_);
}

// The worker did something that ends it; `waited_seconds` is how long it had been silent.
Failure TrialRunner::end_worker(const Worker::Event& event, double waited_seconds) {
  Failure failure = worker_->failure();
  worker_.reset();
  if (event.kind == Kind::Garbage) {
    failure.outcome = Outcome::Crashed;
    failure.reason = fmt::format("spoke what is not the protocol: {}", event.error);
  }
  if (event.kind == Kind::Silent) {
    failure.outcome = Outcome::TimedOut;
    failure.reason = fmt::format("no sign of life for {}", format_seconds(waited_seconds));
  }
  return failure;
}

Failure TrialRunner::start_failed(const Worker::Event& event) {
  const std::string program = command_.command.front();
  const Failed* failed = event.kind == Kind::Said ? std::get_if<Failed>(&event.message) : nullptr;
  const std::string said = failed != nullptr ? failed->message : "";
  const bool out_of_memory = failed != nullptr && failed->kind == "out_of_memory";
  Failure failure = end_worker(event, patience_.start_seconds);
  if (out_of_memory || (failed == nullptr && failure.outcome == Outcome::OutOfMemory)) {
    throw Error(ErrorKind::OutOfMemory, "the model itself",
                "does not fit: " + (said.empty() ? failure.reason : said));
  }
  if (failed != nullptr) throw error_of(*failed);
  if (failure.exit_code == 1 || failure.exit_code == 2) {
    // It said why on its standard error, in the words of our own errors.
    throw Error(failure.exit_code == 2 ? ErrorKind::InvalidInput : ErrorKind::No, "",
                own_words(failure.last_line));
  }
  if (++failed_starts_ >= kMostFailedStarts) {
    throw Error(
        ErrorKind::Internal, program,
        fmt::format("failed to start {} times: {}", failed_starts_, failure.reason),
        command_.log_file.empty() ? "" : fmt::format("Its output is in {}", command_.log_file.string()));
  }
  return failure;
}

// Starts a worker when none runs; a failure that may not come again is returned, one that will is thrown.
std::optional<Failure> TrialRunner::ensure_worker() {
  if (worker_) return std::nullopt;
  show("starting the engine", std::nullopt);
  worker_ = std::make_unique<Worker>(command_, interrupt_);
  while (true) {
    const Worker::Event event = worker_->next(patience_.start_seconds);
    if (event.kind == Kind::Said) {
      if (const auto* note = std::get_if<Note>(&event.message)) {
        show(note->text, note->fraction);
        continue;
      }
      if (const auto* hello = std::get_if<Hello>(&event.message)) {
        if (hello->rank != 0) continue;
        if (hello->protocol != kProtocolVersion) {
          throw version_error(command_.command.front(), hello->protocol);
        }
        if (!hello->can_resplit) {
          throw Error(ErrorKind::Unsupported, command_.command.front(), "cannot change its split");
        }
        hello_ = *hello;
        failed_starts_ = 0;
        return std::nullopt;
      }
      if (!std::holds_alternative<Failed>(event.message)) {
        return start_failed({Kind::Garbage, Stop{}, "its first message is not a hello"});
      }
    }
    return start_failed(event);
  }
}

Trial TrialRunner::serve(const TrialRequest& request, const std::string& label) {
  TrialRecord record(request);
  const std::int64_t steps = request.warmup_steps + request.steps;
  const RunSplit message{request.split.micro_batch,
                         request.split.accumulation_steps,
                         steps,
                         request.first_step,
                         request.batch,
                         request.layout,
                         request.checkpointing,
                         request.split.micro_tokens};
  if (!worker_->send(message)) {
    // It died after its last trial: what it left behind says why.
    const Failure failure = end_worker({Kind::Exited, Stop{}, ""}, 0);
    return record.finish(failure.outcome, failure.reason);
  }
  while (true) {
    const double limit = silence_limit();
    const Worker::Event event = worker_->next(limit);
    if (event.kind != Kind::Said) {
      const Failure failure = end_worker(event, limit);
      return record.finish(failure.outcome, failure.reason);
    }
    if (const auto* step = std::get_if<StepReport>(&event.message)) {
      record.add(*step);
      slowest_step_seconds_ = std::max(slowest_step_seconds_, record.slowest_step_seconds());
      show(fmt::format("{}: step {} of {}", label, record.steps_seen(), steps),
           static_cast<double>(record.steps_seen()) / static_cast<double>(steps));
    } else if (const auto* failed = std::get_if<Failed>(&event.message)) {
      if (failed->kind == kLostPeer) {
        const Failure failure = end_worker({Kind::Exited, Stop{}, ""}, 0);
        return record.finish(failure.outcome, failed->message);
      }
      Trial trial = record.finish(outcome_of(*failed), failed->message);
      if (failed->peak_bytes) trial.peak_bytes = failed->peak_bytes;
      return trial;
    } else if (std::holds_alternative<Done>(event.message)) {
      return record.finish(Outcome::Measured, "");
    } else if (const auto* note = std::get_if<Note>(&event.message)) {
      show(note->text, note->fraction);
    }
  }
}

Trial TrialRunner::run(const TrialRequest& request) try {
  const double begin = steady_seconds();
  const bool was_running = worker_ != nullptr;
  const std::optional<Failure> failure = ensure_worker();
  const double started = steady_seconds();
  Trial trial;
  if (failure) {
    trial = TrialRecord(request).finish(failure->outcome, "before it said hello: " + failure->reason);
  } else {
    trial = serve(request, to_string(request.split));
  }
  trial.wall_seconds = steady_seconds() - begin;
  trial.startup_seconds = was_running ? 0 : started - begin;
  return trial;
} catch (...) {
  worker_.reset();  // whoever pressed Ctrl-C does not want to wait for the running trial
  throw;
}

}  // namespace batchwright::run
