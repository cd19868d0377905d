#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tune/equivalence.h"
#include "tune/step_comparison.h"

namespace batchwright::tune {

// What is said of one split; the fields are those of SplitComparison.
struct Judgement {
  Equivalent verdict = Equivalent::CannotTell;
  std::string kind, why, fix;
  bool unexplained = false;  // whether the script repeats itself would tell more
};

// A difference with a known cause.
Judgement mistake(const char* kind, std::string why, std::string fix);

// The mistakes that a run shows without another beside it: another split than was asked for, gradients zeroed
// inside a window or kept beyond it, clipping per micro-batch, what is left of an epoch.
std::optional<Judgement> mistake_in_run(const run::ObservedRun& run, const std::vector<StepView>& steps);

}  // namespace batchwright::tune
