#include "plan/interval.h"

#include <cmath>

namespace batchwright::plan {
namespace {

bool shards(const Request& request) {
  return request.devices > 1 && request.sharding != Sharding::None && request.sharding != Sharding::Ddp;
}

}  // namespace

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter) {
  if (device.is_cpu()) return {0.95, 1.05};
  Factors factors{0.93, 1.07};
  // Full fine-tuning is mostly weights and states, which are counted exactly; kept gradients and
  // fragmentation of older versions are not.
  if (request.method == Method::Full) factors = {0.92, 1.10};
  // What quantised layers keep changed from version to version, upwards of what they must.
  if (request.method == Method::Qlora) factors = {0.92, 1.13};
  if (shards(request)) factors.low -= 0.03, factors.high += 0.05;
  if (request.checkpointing == Checkpointing::Selective) factors.low -= 0.06, factors.high += 0.04;
  // Caches and contexts: up to 1.4 GiB of the one, a fifth of what moves of the other.
  if (counter != Counter::Allocated)
    factors.low -= 0.02, factors.high += counter == Counter::Process ? 0.08 : 0.04;
  return factors;
}

Factors time_factors(const Request& request, const hardware::Device& device, const TimeParts& parts) {
  if (device.is_cpu()) return {0.85, 1.15};
  double width = 1.22 + 0.3 * parts.launch / parts.total();
  if (request.method == Method::Qlora) width += 0.03;
  return {1 / width, width};
}

}  // namespace batchwright::plan
