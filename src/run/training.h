#pragma once

#include <functional>

#include "run/trial_runner.h"

namespace batchwright::run {

struct TrainingOutcome {
  Json summary;  // what the worker said with `done`
  bool interrupted = false;
};

// Runs one training in a child process to its end. A signal asks the worker to stop at the next step; it then
// saves what it has. Throws OutOfMemory, InvalidInput (what the worker refused) or Internal (it died or
// hangs), each with the worker's own words.
TrainingOutcome run_training(const WorkerCommand& command, const InterruptGuard& interrupt,
                             const std::function<void(const StepReport&)>& on_step,
                             const OnProgress& on_progress,
                             Patience patience = {180, 1800, 1800, 20});  // an evaluation is long and silent

}  // namespace batchwright::run
