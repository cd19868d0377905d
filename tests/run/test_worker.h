#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
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

// Real torch in a real child: skipped where the test environment has none.
class WithTorch : public ::testing::Test {
 protected:
  void SetUp() override {
    static const bool has_torch = [] {
      ProcessOptions options;
      options.command = {python_for_tests(), "-c", "import torch"};
      return run_captured(options, std::chrono::seconds(120)).status.succeeded();
    }();
    if (!has_torch) GTEST_SKIP() << "no torch in " << python_for_tests();
  }
};

}  // namespace batchwright::run
