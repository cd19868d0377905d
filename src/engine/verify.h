#pragma once

#include "run/channel.h"
#include "run/options.h"

namespace batchwright::engine {

// Computes the gradient of the first effective batch, dropout on, uncut and then under every exact split,
// layout and checkpointing mode, and reports each one's difference: done's result is {"splits": [...],
// "verdict"} as `verify --json` prints it. A cut that does not fit in memory is reported as such.
void verify(const run::EngineJob& job, run::WorkerChannel& channel);

}  // namespace batchwright::engine
