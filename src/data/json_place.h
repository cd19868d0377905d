#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace batchwright::data {

// One step into a JSON document: a field's name or an element's number.
using JsonStep = std::variant<std::string, std::size_t>;

// The 1-based line on which the value at `path` begins. `text` must be valid JSON that holds such a value;
// otherwise the line of the last step that was found.
std::int64_t json_line(std::string_view text, const std::vector<JsonStep>& path);

}  // namespace batchwright::data
