#pragma once

#include <optional>
#include <string_view>

#include "check/finding.h"

namespace batchwright::check {

// A note on the first pinned or reported release of Transformers in a text (a requirement, a pip command, the
// environment of an issue) that is known to scale the loss wrongly under accumulation.
std::optional<Finding> known_library_bug(std::string_view text);

}  // namespace batchwright::check
