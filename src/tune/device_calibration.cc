#include "tune/device_calibration.h"

#include "base/error.h"

namespace batchwright::tune {

std::optional<hardware::Calibration> calibration_for(const Json& facts) try {
  if (!facts.is_object() || !JsonFields(facts, "run.json: facts").text("device", "").starts_with("cpu"))
    return std::nullopt;
  return hardware::stored_calibration();
} catch (const Error&) {
  return std::nullopt;
}

}  // namespace batchwright::tune
