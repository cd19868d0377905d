#pragma once

#include <sys/types.h>

#include <cstdint>

namespace batchwright::internal {

// What crosses from the supervisor to us over the status pipe: Started first, Ended last.
struct SupervisorReport {
  std::int32_t kind = 0;  // 1 started, 2 could not execute (value: errno), 3 ended (value: wait status)
  std::int32_t value = 0;
  std::int64_t process_id = 0;
  std::int64_t peak_resident_kib = 0;
};

// Everything the forked side needs, prepared before the fork: between fork and exec only async-signal-safe
// calls are allowed, so nothing there may allocate.
struct SupervisorPlan {
  const char* executable = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  const char* working_folder = nullptr;  // nullptr: keep
  const char* output_file = nullptr;
  std::int64_t address_space_bytes = 0;
  std::int64_t grace_milliseconds = 0;
  int report_descriptor = -1;
  pid_t parent = -1;
};

// Runs in the forked process and never returns.
[[noreturn]] void supervise(const SupervisorPlan& plan);

}  // namespace batchwright::internal
