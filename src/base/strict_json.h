#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

namespace batchwright {

// parse_json for rows of data: InvalidInput also for an object that names a field twice, for of two labels
// neither can be trusted.
Json parse_json_strictly(std::string_view text, const std::string& subject);

}  // namespace batchwright
