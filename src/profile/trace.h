#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/phase_clock.h"

namespace batchwright::profile {

// The phases of some steps on every thread, for a trace viewer (https://ui.perfetto.dev, chrome://tracing).
class Trace {
 public:
  Trace() : start_(std::chrono::steady_clock::now()) {}

  void add(int thread, const PhaseSpan& span);
  void add_step(std::int64_t step, std::chrono::steady_clock::time_point begin,
                std::chrono::steady_clock::time_point end);
  // Trace Event Format, complete events ("ph": "X"), times in microseconds since the trace began. One row a
  // thread, and one for the steps.
  std::string to_chrome_json() const;

 private:
  struct Event {
    std::string name;
    int row = 0;
    double begin_microseconds = 0, duration_microseconds = 0;
  };
  void add(std::string name, int row, std::chrono::steady_clock::time_point begin,
           std::chrono::steady_clock::time_point end);

  std::chrono::steady_clock::time_point start_;
  std::vector<Event> events_;
};

}  // namespace batchwright::profile
