#pragma once

#include "engine/stepper.h"
#include "run/protocol.h"

namespace batchwright::engine {

std::string torch_version();

// What this program says of itself on the protocol.
run::Hello hello(bool can_resplit, const Stepper& stepper);

// What rank 0 did in this step; and what all ranks did together.
run::StepReport report_of(const StepOutcome& outcome, std::int64_t step, double learning_rate);
run::StepReport whole_report_of(const StepOutcome& outcome, std::int64_t step, double learning_rate,
                                int ranks);

}  // namespace batchwright::engine
