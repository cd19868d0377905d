#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/options.h"

namespace batchwright::tune {

// One change with which the smallest micro-batch would run, and the memory it then needs on the longest
// examples.
struct Remedy {
  std::string change;  // "--memory-limit 640MiB", "--lora 16", "--max-length 64"
  std::int64_t peak_bytes = 0;
};

// Measures the peak of one step of the smallest split with other options, without a limit; nullopt when that
// fails.
using MeasurePeak = std::function<std::optional<std::int64_t>(const run::TrainingOptions&)>;

// For a run in which nothing fits: the limit that would do, and the changes of method that stay below the
// limit given. Each is measured, not predicted.
std::vector<Remedy> find_remedies(const run::TrainingOptions& options, const MeasurePeak& measure);

}  // namespace batchwright::tune
