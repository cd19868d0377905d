#include "plan/interval.h"

#include <cmath>

namespace batchwright::plan {

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter) {
  if (device.is_cpu()) return {0.95, 1.05};
  double low = 0.06, high = 0.08;
  // Full fine-tuning is mostly weights and states, which are counted exactly; what a version of a framework
  // does with logits is not.
  if (request.method == Method::Full && request.checkpointing == Checkpointing::Full) low = 0.05, high = 0.06;
  if (request.method == Method::Qlora) low += 0.04, high += 0.02;
  if (request.devices > 1 && request.sharding != Sharding::None && request.sharding != Sharding::Ddp) {
    low += 0.02, high += 0.02;
  }
  if (request.checkpointing == Checkpointing::Selective) low += 0.05, high += 0.05;
  if (counter != Counter::Allocated) low += 0.03, high += 0.05;
  return {1 - low, 1 + high};
}

Factors time_factors(const Request& request, const hardware::Device& device) {
  if (device.is_cpu()) return {0.85, 1.15};
  double width = 1.22;
  if (request.method == Method::Qlora) width = 1.25;
  return {1 / width, width};
}

}  // namespace batchwright::plan
