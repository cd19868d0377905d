#pragma once

#include "engine/stepper.h"
#include "run/protocol.h"

namespace batchwright::engine {

std::string torch_version();

// What this program says of itself on the protocol.
run::Hello hello(bool can_resplit, const Stepper& stepper);

run::StepReport report_of(const StepOutcome& outcome, std::int64_t step, double learning_rate);

}  // namespace batchwright::engine
