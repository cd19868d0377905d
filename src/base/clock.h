#pragma once

#include <chrono>

namespace batchwright {

// Seconds on a clock that nobody sets; only differences mean something.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace batchwright
