#include "base/error.h"
#include "hardware/calibration.h"
#include "plan/planner.h"

namespace batchwright::plan {

hardware::Device resolve_device(const Request& request) {
  if (request.gpu_facts) return hardware::device_from_json(*request.gpu_facts, "gpu");
  if (request.gpu.ends_with(".json")) {
    return hardware::device_from_json(read_json_file(request.gpu, 1 << 20), request.gpu);
  }
  if (request.gpu == "cpu" || request.gpu == "auto") return hardware::this_machine(request.gpu == "cpu");
  return hardware::find_device(request.gpu);
}

}  // namespace batchwright::plan
