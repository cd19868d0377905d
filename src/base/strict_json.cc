#include "base/strict_json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "base/error.h"

namespace batchwright {

Json parse_json_strictly(std::string_view text, const std::string& subject) {
  Json checked = parse_json(text, subject);  // malformed text and deep nesting are refused here
  std::vector<std::set<std::string>> names;  // of the open objects
  [[maybe_unused]] const Json nothing = Json::parse(text, [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.get<std::string>()).second) {
      throw Error(ErrorKind::InvalidInput, subject, fmt::format("names {} twice", dump_line(value)));
    }
    // Nothing is kept: the document is there already.
    return event == Json::parse_event_t::key || event == Json::parse_event_t::object_start ||
           event == Json::parse_event_t::array_start;
  });
  return checked;
}

}  // namespace batchwright
