#pragma once

#include "run/channel.h"
#include "run/options.h"

namespace batchwright::engine {

// Trains with job.split and writes steps.jsonl, summary.json and the model (in `model/`) under job.run_folder. Every step is
// also reported on the channel. When the tuner asks to stop, the step in progress is finished and what was learnt so
// far is evaluated and saved, marked "interrupted".
void train(const run::EngineJob& job, run::WorkerChannel& channel);

// Writes the gradient of the first effective batch at the initial weights to run_folder: gradients.safetensors (names as
// the weights'), and gradients.json with the loss, the norm, the rows of every window that training would see and the
// logits of the first window without dropout.
void write_gradients(const run::EngineJob& job, run::WorkerChannel& channel);

}  // namespace batchwright::engine
