#pragma once

#include "engine/process_group.h"
#include "run/channel.h"
#include "run/options.h"

namespace batchwright::engine {

// Serves `split` messages until `stop`: each runs some optimizer steps with that split and reports every one.
// Out of memory ends the trial, not the process. group: nullptr for one device; else rank 0 takes the orders
// and hands them on.
void serve_trials(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group);

}  // namespace batchwright::engine
