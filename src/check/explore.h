#pragma once

#include "check/judge.h"
#include "check/scan.h"
#include "check/syntax.h"

namespace batchwright::check {

// Simulates a file from every place where training can start, under every configuration that its open
// conditions allow (one turned at a time), and joins what the runs show.
Judgement explore(const Module& module, const Scan& scan);

}  // namespace batchwright::check
