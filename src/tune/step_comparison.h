#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/script_runner.h"

namespace batchwright::tune {

// One optimizer step of an observed run, over all ranks.
struct StepView {
  const run::StepEvidence* leader = nullptr;        // rank 0's; the run must outlive the view
  std::vector<const run::StepEvidence*> all_ranks;  // rank 0 first
  std::optional<double> loss;           // mean over the ranks of the losses that went into backward
  std::optional<double> gradient_norm;  // of rank 0; after the last backward all ranks hold the same
  std::int64_t examples = 0;            // sum over the ranks
  std::string data;                     // fingerprints of all ranks' examples, whatever rank saw which
  double learning_rate = 0;

  std::size_t micro_steps() const { return leader->micro_steps.size(); }
  // What the loss would be if each micro-batch counted by its labels instead of equally; nullopt when their
  // numbers are equal or not known.
  std::optional<double> label_weighted_loss() const;
  std::int64_t least_labels() const;
  std::int64_t most_labels() const;
};

// The steps of which every rank sent its evidence, from the first on.
std::vector<StepView> step_views(const run::ObservedRun& run);

// Relative differences up to which two steps count as the same.
struct StepTolerance {
  double loss = 0, gradient = 0;
};
StepTolerance first_step_tolerance(const StepView& step);
StepTolerance later_step_tolerance();
// False when a value is missing.
bool same_step(const StepView& a, const StepView& b, StepTolerance tolerance);

}  // namespace batchwright::tune
