#pragma once

#include <functional>
#include <vector>

#include "plan/planner.h"

namespace batchwright::plan {

// What would make the smallest micro-batch fit, cheapest first: each change alone where that is enough, else
// the fewest together. First what costs nothing but a setting, then time, then the method, last the data.
// Every entry is predicted and fits ("yes"); only where nothing does are those listed that may ("unsure"),
// and where nothing may, the one set that comes nearest ("no"). At most six. `shapes` answers the shape of a
// request's model with the adapters it asks for.
using ShapeSource = std::function<const ModelShape&(const Request&)>;
std::vector<Change> changes_that_help(const Plan& plan, const ShapeSource& shapes);

}  // namespace batchwright::plan
