#pragma once

#include <optional>
#include <string>

#include "tune/explain.h"

namespace batchwright::cli {

// The sentence and the tables that `batchwright explain` prints.
std::string describe(const tune::Explanation& explanation, const std::optional<run::Split>& recommended);

// One line a removable cause, with what was measured of it; empty when there is none.
std::string describe_recommendations(const tune::Explanation& explanation);

}  // namespace batchwright::cli
