#pragma once

#include <optional>

#include "base/json.h"
#include "hardware/calibration.h"

namespace batchwright::tune {

// What `batchwright calibrate` stored, when a run's facts (its run.json) say that its trials ran on a CPU:
// the calibration knows no other device. A damaged file is no reason to lose a result: it counts as none.
std::optional<hardware::Calibration> calibration_for(const Json& facts);

}  // namespace batchwright::tune
