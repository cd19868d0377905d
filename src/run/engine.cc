#include "run/engine.h"

#include <unistd.h>

#include <cstdlib>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"

namespace batchwright::run {

std::filesystem::path find_engine() {
  constexpr const char* kVariable = "BATCHWRIGHT_ENGINE";
  if (const char* named = std::getenv(kVariable); named != nullptr && *named != '\0') {
    if (::access(named, X_OK) != 0)
      throw Error(ErrorKind::NotFound, kVariable, std::string("'") + named + "' cannot be run");
    return named;
  }
  const std::filesystem::path self = running_program(), beside = self.parent_path() / "batchwright-engine";
  if (!self.empty() && ::access(beside.c_str(), X_OK) == 0) return beside;
  throw Error(
      ErrorKind::NotFound, "batchwright-engine", "is not beside this program",
      "Build it with BATCHWRIGHT_ENGINE=ON, or name it in the environment variable BATCHWRIGHT_ENGINE");
}

WorkerCommand engine_command(const EngineJob& job, const std::filesystem::path& folder,
                             std::int64_t devices) {
  const std::filesystem::path job_file = std::filesystem::absolute(folder / "job.json");
  write_file_atomic(job_file, to_json(job).dump(2) + "\n");
  WorkerCommand command;
  command.command = {find_engine().string(), job_file.string()};
  command.log_file = std::filesystem::absolute(folder / "worker.log");
  command.processes = static_cast<int>(devices);
  // A launcher that started us is not our engine's.
  for (const char* name : {"RANK", "WORLD_SIZE", "TORCHELASTIC_USE_AGENT_STORE"}) {
    command.environment[name] = std::nullopt;
  }
  return command;
}

}  // namespace batchwright::run
