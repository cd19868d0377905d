#pragma once

#include <string>

#include "base/json.h"
#include "plan/planner.h"

namespace batchwright::plan {

// The plan as scripts read it: the document of ../docs/plan.md, "version": 1, on one line.
std::string plan_line(const Plan& plan);
Json plan_document(const Plan& plan);  // the same, parsed

// One line of --batch: a request's line in, an answer's line out. A bad line answers {"error": {...}} and
// sets `failed`.
std::string answer_line(Planner& planner, const std::string& line, std::size_t number, bool& failed);

// The plan as a person reads it: a table of splits, the choice with its reason, what else there is to say.
std::string plan_text(const Plan& plan);

// One split's memory and time, a bar a part, and what would change the answer.
std::string explain_text(const Plan& plan, std::size_t index);

}  // namespace batchwright::plan
