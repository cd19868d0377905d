#pragma once

#include <filesystem>

#include "run/options.h"
#include "run/worker.h"

namespace batchwright::run {

// The program batchwright-engine: BATCHWRIGHT_ENGINE names it, else it lies beside the running program.
// Throws NotFound saying how to build it.
std::filesystem::path find_engine();

// Writes job.json into `folder` and returns the command that runs it, one process a device; what the engine
// prints goes to folder/worker.log.
WorkerCommand engine_command(const EngineJob& job, const std::filesystem::path& folder,
                             std::int64_t devices = 1);

}  // namespace batchwright::run
