#pragma once

#include <string>

#include "cli/tuning.h"

namespace batchwright::cli {

// The table and the sentences that `batchwright tune` prints for people.
std::string describe(const TuningResult& result);

}  // namespace batchwright::cli
