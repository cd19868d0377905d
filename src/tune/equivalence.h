#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "run/script_runner.h"

namespace batchwright::tune {

enum class Equivalent { Same, Different, CannotTell };
std::string_view equivalent_name(Equivalent verdict);  // "same", "different", "cannot_tell"

// One split of a user's script against the reference split, from the same seed.
struct SplitComparison {
  run::Split split;
  bool is_reference = false;
  Equivalent verdict = Equivalent::CannotTell;
  std::vector<double> losses, gradient_norms;  // by optimizer step; the losses of all ranks' mean
  // Largest relative difference over the steps that could be compared.
  std::optional<double> loss_difference, gradient_difference;
  // First step's loss and gradient norm as multiples of the reference's.
  std::optional<double> loss_factor, gradient_factor;
  std::string kind;  // the mistake, by the names that `batchwright check` prints; empty: none, or none known
  std::string why;   // one sentence
  std::string fix;   // what to change; empty: nothing, or not known
};

struct Equivalence {
  std::vector<SplitComparison>
      splits;  // as the runs were given; the first that was measured is the reference
  Equivalent verdict = Equivalent::CannotTell;
  // A difference without a cause: whether the script repeats itself at all would tell more.
  bool needs_repeat = false;
};

// Compares runs of one effective batch. Two splits are the same when, on the same examples and from the same
// weights, the losses that went into backward sum to the same and the accumulated gradients have the same
// norm: to 1e-4 and 1e-3 at the first step in 32 bits (sums in another order differ by about a hundredth of
// that), and more loosely afterwards, because AdamW turns the last bits of near-zero gradients into whole
// updates. What a script does inside a step (zeroing, clipping, stepping the schedule) is read from what the
// hook saw. `repeat`: a second run of the reference split, or null.
Equivalence compare_runs(std::span<const run::ObservedRun> runs, const run::ObservedRun* repeat = nullptr);

// One row of `verify --json`.
Json to_json(const SplitComparison& comparison);

}  // namespace batchwright::tune
