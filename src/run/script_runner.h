#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/script.h"
#include "run/trial_runner.h"

namespace batchwright::run {

struct ScriptSettings {
  ScriptCommand script;
  // The runner's own: holds a fresh folder for each trial, removed after it; what a killed run left is
  // removed first.
  std::filesystem::path scratch_root;
  std::filesystem::path log_file;
  std::filesystem::path hook_folder;    // put first on PYTHONPATH; empty: no hook
  std::filesystem::path hook_recorder;  // the hook's machine code; empty: it does the same in Python
  std::int64_t memory_limit_bytes = 0;  // 0: no limit (WorkerCommand)
};

// One run of a script for `verify`: what every rank saw of its first optimizer steps, from the same start.
struct ObservedRun {
  Split split;
  Outcome outcome = Outcome::NotTried;
  std::string reason;                            // why it is not Measured
  std::vector<std::map<int, StepReport>> steps;  // by step, then rank; only steps that all ranks reported
  std::string framework;                         // "torch 2.13.0"
};

// Trials of a user's script: one process each. The hook in the script reports its steps; a script without
// torch is timed by two runs of different length when it takes the number of steps as an argument.
class ScriptRunner : public Workload {
 public:
  ScriptRunner(ScriptSettings settings, const InterruptGuard* interrupt, OnProgress on_progress = {},
               Patience patience = {900, 900, 60, 10});

  Trial run(const TrialRequest& request) override;
  // Runs `steps` optimizer steps with evidence; dropout is turned off unless kept.
  ObservedRun observe(const Split& split, std::int64_t steps, bool keep_dropout);
  std::optional<Hello> hello() const override { return hello_; }

 private:
  Trial run_with_hook(const TrialRequest& request);
  Trial run_at_two_lengths(const TrialRequest& request);
  double silence_limit(bool said_hello) const;
  struct Scratch;  // what a trial may write
  WorkerCommand command_of(const TrialRequest& request, const Scratch& scratch, std::int64_t steps) const;
  std::filesystem::path fresh_scratch();

  ScriptSettings settings_;
  const InterruptGuard* interrupt_;
  OnProgress on_progress_;
  Patience patience_;
  std::optional<Hello> hello_;
  double slowest_step_seconds_ = 0;
  std::int64_t trials_ = 0;
};

}  // namespace batchwright::run
