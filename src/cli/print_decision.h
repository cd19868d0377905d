#pragma once

#include <string>

#include "tune/decision.h"

namespace batchwright::cli {

// The table and the sentences that `batchwright tune` prints for people.
std::string describe(const tune::Decision& decision);

}  // namespace batchwright::cli
