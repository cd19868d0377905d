#pragma once

#include "tune/run_mistakes.h"

namespace batchwright::tune {

// The reference is right unless it shows a mistake by itself.
Judgement judge_reference(const run::ObservedRun& reference);

// One run against the reference, step by step: the same, a mistake by its name, or why it cannot be told.
// `repeat`: a second run of the reference, or null; without it a difference that has no cause asks for one
// (Judgement::unexplained).
Judgement judge_against(const run::ObservedRun& run, const run::ObservedRun& reference,
                        const run::ObservedRun* repeat);

}  // namespace batchwright::tune
