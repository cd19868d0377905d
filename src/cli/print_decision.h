#pragma once

#include <string>

#include "tune/decision.h"

namespace batchwright::cli {

// The table and the sentences that `batchwright tune` prints for people.
std::string describe(const tune::Decision& decision);

// The table of shares and the sentences that `batchwright explain` prints.
std::string describe(const tune::Explanation& explanation, const std::optional<run::Split>& recommended);

}  // namespace batchwright::cli
