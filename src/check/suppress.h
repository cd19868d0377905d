#pragma once

#include <string_view>

#include "check/finding.h"

namespace batchwright::check {

// Whether a comment of the text silences the finding: "batchwright: ignore[kind]" (or "ignore" for every
// kind) on its line or the line above, "batchwright: ignore-file[kind]" (or "ignore-file") anywhere in the
// first 50 lines. Several kinds stand between the brackets with commas.
bool is_suppressed(const Finding& finding, std::string_view text);

}  // namespace batchwright::check
