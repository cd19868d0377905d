#pragma once

#include "engine/process_group.h"
#include "run/channel.h"
#include "run/options.h"

namespace batchwright::engine {

// Trains with job.split and writes steps.jsonl, summary.json and the model (in `model/`) under
// job.run_folder. Every step is also reported on the channel. When the tuner asks to stop, the step in
// progress is finished and what was learnt so far is evaluated and saved, marked "interrupted". group:
// nullptr for one device; else rank 0 writes, reports and takes orders for all.
void train(const run::EngineJob& job, run::WorkerChannel& channel, ProcessGroup* group);

// For comparison with another implementation (tests/engine/compare.py), writes to run_folder:
// logits.safetensors, of the first effective batch without dropout; gradients.safetensors, of the first
// effective batch, names as save_model's; dump.json, the losses and gradient norms of a training of
// options.steps steps and the rows of every step's window.
void dump(const run::EngineJob& job, run::WorkerChannel& channel);

}  // namespace batchwright::engine
