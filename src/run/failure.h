#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "run/memory_group.h"
#include "run/trial.h"

namespace batchwright::run {

// Why a worker's process ended, read from how it ended and from the end of what it printed.
struct Failure {
  Outcome outcome = Outcome::Crashed;
  std::string reason;  // one line for people
  std::optional<int> exit_code;
  std::string last_line;  // the last line that it printed
};

// Knows the messages of the CUDA and CPU allocators of PyTorch, of cuBLAS and cuDNN when an allocation fails,
// of Python's MemoryError and C++'s bad_alloc, of NCCL and Gloo time-outs, and of a script that asks for
// input. `kernel_killed`: the kernel's out-of-memory killer struck while the worker ran (see OomKillCounter).
Failure classify_failure(const ExitStatus& status, std::string_view output, bool kernel_killed);

// The number of processes that the kernel's out-of-memory killer ended in a group of ours, else in this
// process's control group, else on this machine (/proc/vmstat oom_kill).
class OomKillCounter {
 public:
  explicit OomKillCounter(const MemoryGroup* group = nullptr) : group_(group), start_(read()) {}
  bool risen() const;

 private:
  std::optional<std::int64_t> read() const;
  const MemoryGroup* group_;
  std::optional<std::int64_t> start_;
};

}  // namespace batchwright::run
