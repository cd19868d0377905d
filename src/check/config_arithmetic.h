#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace batchwright::check {

// The value of an integer or real expression as shells and Python write it.
struct Computed {
  double value = 0;
  bool constant = true;  // written without any variable
  // The first integer division that left a remainder, spelled out: "100 / 24 = 4, remainder 4". Accumulation
  // steps that come from one make another batch than the one asked for.
  std::string inexact;
};

using Lookup = std::function<std::optional<Computed>(std::string_view name)>;

// Evaluates + - * / // % ( ) and names over numbers; `integer_division` makes "/" floor, as in a shell. Calls
// of max, min, int, round and ceil (also math.ceil) are understood. Empty when anything else occurs, a name
// is unknown, a divisor is zero or the expression nests deeper than 40 levels.
std::optional<Computed> evaluate_arithmetic(std::string_view expression, bool integer_division,
                                            const Lookup& lookup);

}  // namespace batchwright::check
