#pragma once

#include <string>

#include "plan/planner.h"

namespace batchwright::plan {

inline Plan plan_of(const std::string& request) {
  Planner planner;
  return planner.plan(parse_request(parse_json(request, "test"), "test"));
}

// The same request with one key changed.
inline Plan plan_with(const std::string& request, const std::string& key, const Json& value) {
  Json document = parse_json(request, "test");
  document[key] = value;
  Planner planner;
  return planner.plan(parse_request(document, "test"));
}

}  // namespace batchwright::plan
