#include <cmath>

#include "plan/request.h"

namespace batchwright::plan {

double LengthHistogram::mean() const {
  double sum = 0, rows = 0;
  for (const auto& [length, count] : counts) {
    sum += static_cast<double>(length) * static_cast<double>(count);
    rows += static_cast<double>(count);
  }
  return sum / rows;
}

double LengthHistogram::expected_longest(std::int64_t draws) const {
  if (counts.size() == 1) return static_cast<double>(counts[0].first);
  double rows = 0;
  for (const auto& entry : counts) rows += static_cast<double>(entry.second);
  // E[max] = sum over lengths of length * (F(length)^draws - F(previous)^draws).
  double expected = 0, below = 0, seen = 0;
  for (const auto& [length, count] : counts) {
    seen += static_cast<double>(count);
    const double here = std::pow(seen / rows, static_cast<double>(draws));
    expected += static_cast<double>(length) * (here - below);
    below = here;
  }
  return expected;
}

}  // namespace batchwright::plan
