#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "run/trial.h"
#include "run/worker.h"

namespace batchwright::run {

// Something that runs trials: our engine, which serves many in one process, or a user's script, started anew
// for each.
class Workload {
 public:
  virtual ~Workload() = default;
  // Runs to the end, whatever happens to the worker. Throws Interrupted when a signal asked us to stop, and
  // what makes every further trial pointless (the model cannot be read, the worker never starts).
  virtual Trial run(const TrialRequest& request) = 0;
  // "batchwright-engine 0.1.0, libtorch 2.13.0" and "cpu, 2 threads", once a worker said so.
  virtual std::optional<Hello> hello() const = 0;
};

// How long silence may last before a worker counts as hung.
struct Patience {
  double start_seconds = 180;       // until it says hello; a note starts it afresh
  double first_step_seconds = 300;  // until the first step of all, when no speed is known
  double least_seconds = 30;        // between steps, once a speed is known: never less than this,
  double slowest_factor = 10;       // nor less than this many times the slowest step so far
};

// Receives a line for the progress display and the finished share of the running trial, when known.
using OnProgress = std::function<void(const std::string&, std::optional<double>)>;

// The text of an error that batchwright-engine printed, without the program's name.
std::string own_words(std::string line);
// What a worker said with `failed` outside a trial, as an error of the kind that it named.
Error error_of(const Failed& failed);
// Unsupported: a worker of another release.
Error version_error(const std::string& program, int protocol);

// Trials in a worker that can change its split. When it dies, the running trial is classified and the next
// one starts a new worker.
class TrialRunner : public Workload {
 public:
  // interrupt may be null.
  TrialRunner(WorkerCommand command, const InterruptGuard* interrupt, OnProgress on_progress = {},
              Patience patience = {});
  ~TrialRunner() override;  // stops the worker

  Trial run(const TrialRequest& request) override;
  std::optional<Hello> hello() const override { return hello_; }
  pid_t worker_process_id() const { return worker_ ? worker_->process_id() : -1; }

 private:
  std::optional<Failure> ensure_worker();
  Failure start_failed(const Worker::Event& event);
  Trial serve(const TrialRequest& request, const std::string& label);
  double silence_limit() const;
  Failure end_worker(const Worker::Event& event, double waited_seconds);
  void show(const std::string& text, std::optional<double> fraction);

  WorkerCommand command_;
  const InterruptGuard* interrupt_;
  OnProgress on_progress_;
  Patience patience_;
  std::unique_ptr<Worker> worker_;
  std::optional<Hello> hello_;
  double slowest_step_seconds_ = 0;
  int failed_starts_ = 0;  // in a row
};

}  // namespace batchwright::run
