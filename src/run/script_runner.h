#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "run/script.h"
#include "run/trial_runner.h"

namespace batchwright::run {

struct ScriptSettings {
  ScriptCommand script;
  std::filesystem::path scratch_root;  // holds a fresh folder for each trial, removed after it
  std::filesystem::path log_file;
  std::filesystem::path hook_folder;     // put first on PYTHONPATH; empty: no hook
  std::int64_t address_space_bytes = 0;  // 0: no limit
};

// Trials of a user's script: one process each. The hook in the script reports its steps; a script without
// torch is timed by two runs of different length when it takes the number of steps as an argument.
class ScriptRunner : public Workload {
 public:
  ScriptRunner(ScriptSettings settings, const InterruptGuard* interrupt, OnProgress on_progress = {},
               Patience patience = {900, 900, 60, 10});

  Trial run(const TrialRequest& request) override;
  std::optional<Hello> hello() const override { return hello_; }

 private:
  Trial run_with_hook(const TrialRequest& request);
  Trial run_at_two_lengths(const TrialRequest& request);
  WorkerCommand command_of(const TrialRequest& request, const std::filesystem::path& scratch,
                           std::int64_t steps) const;
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
