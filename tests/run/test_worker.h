#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "paths.h"
#include "run/worker.h"

namespace batchwright::run {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/batchwright-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The command that starts tests/run/worker.py with this plan.
inline WorkerCommand worker_command(const TemporaryFolder& folder, const Json& plan) {
  write_file_atomic(folder / "plan.json", dump_line(plan));
  WorkerCommand command;
  command.command = {python_for_tests(), source_folder() + "/tests/run/worker.py",
                     (folder / "plan.json").string()};
  command.log_file = folder / "worker.log";
  return command;
}

// Alive, and not a zombie that waits for its parent.
inline bool is_running(pid_t id) {
  std::ifstream stat("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto at = text.rfind(')');
  return at != std::string::npos && text.size() > at + 2 && text[at + 2] != 'Z';
}

}  // namespace batchwright::run
