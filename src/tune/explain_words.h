#pragma once

#include <string>
#include <vector>

#include "tune/explain.h"
#include "tune/observation.h"

namespace batchwright::tune {

// The line of the fit, as Explanation describes it.
struct Line {
  double fixed = 0, slope = 0;
};

// The plain sentence: why the slowest split is slower than the chosen one. `line` is null when the fit could
// not be made.
std::string sentence_of(const Explanation& explanation, const std::vector<Observation>& observations,
                        const Observation& chosen, const Line* line);

// The removable causes in a step of the chosen split, the largest first.
std::vector<Explanation::Recommendation> recommendations_for(const Observation& chosen);

}  // namespace batchwright::tune
