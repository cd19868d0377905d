#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace batchwright::run {

// What the hook in a user's script saw of one backward pass while `verify` ran it. Unknown and non-finite
// values are absent.
struct MicroStepEvidence {
  std::optional<double> loss;                             // the value that backward started from
  std::optional<double> gradient_before, gradient_after;  // norm of the accumulated gradient, unclipped
  std::int64_t examples = 0;
  std::int64_t labels = 0;  // that the cross-entropy or NLL losses in it averaged over; 0: there were none
};

// What verify compares of one optimizer step.
struct StepEvidence {
  std::vector<MicroStepEvidence> micro_steps;
  // Fingerprint of the inputs of the whole step: neither the cut nor the order within a step changes it.
  std::string data;
  std::int64_t scheduler_steps = 0;  // calls of the schedule since the step before
  std::int64_t clippings = 0;        // calls of gradient clipping in the step

  bool dropout = false;            // was active
  bool batch_statistics = false;   // BatchNorm in training mode
  bool reduced_precision = false;  // weights or autocast in 16 bits
  std::string trainer;             // "transformers 5.24.0 Trainer"; empty: a loop of the script's own

  // Sum of the losses that backward started from: what the gradient of the step is a gradient of.
  std::optional<double> loss() const;
  // Norm of the gradient that the optimizer (or clipping, if it comes first) received.
  std::optional<double> gradient_norm() const;
};

Json to_json(const StepEvidence& evidence);
StepEvidence evidence_from_json(const Json& object, const std::string& subject);  // throws InvalidInput

}  // namespace batchwright::run
