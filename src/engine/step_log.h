#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "run/protocol.h"

namespace batchwright::engine {

// The growing steps.jsonl of a training, and its sums. A line has left the process before the next step
// starts.
class StepLog {
 public:
  struct Totals {
    std::int64_t steps = 0, examples = 0, tokens = 0, padded_tokens = 0, peak_bytes = 0, skipped = 0;
    double seconds = 0, last_loss = 0;
  };

  // Starts the file, or, when a run goes on, keeps the lines of its first `kept_steps` steps and drops later
  // and torn ones: those steps will be run again. Throws InvalidInput.
  StepLog(std::filesystem::path path, std::int64_t kept_steps);
  ~StepLog();
  StepLog(const StepLog&) = delete;

  void write(const run::StepReport& report);
  const Totals& totals() const { return totals_; }

 private:
  void add(const Json& line);

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
  Totals totals_;
};

}  // namespace batchwright::engine
