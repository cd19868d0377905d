#pragma once

#include "run/channel.h"
#include "run/options.h"

namespace batchwright::engine {

// Serves `split` messages until `stop`: each runs some optimizer steps with that split and reports every one.
// Out of memory ends the trial, not the process.
void serve_trials(const run::EngineJob& job, run::WorkerChannel& channel);

}  // namespace batchwright::engine
