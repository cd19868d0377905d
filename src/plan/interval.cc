#include "plan/interval.h"

#include <cmath>

namespace batchwright::plan {
namespace {

bool shards(const Request& request) {
  return request.devices > 1 && request.sharding != Sharding::None && request.sharding != Sharding::Ddp;
}

// What a framework's live tensors take is counted; what its version keeps besides is not.
Factors live_factors(const Request& request) {
  // Whole gradients that pile up before they are scattered, and roots that are gathered once more.
  if (shards(request)) return {0.93, 1.35};
  switch (request.method) {
    case Method::Full:
      return {0.88, 1.12};
    case Method::Lora:
      return {0.90, 1.12};
    case Method::Qlora:  // bitsandbytes' versions keep from nothing to a block's inputs twice
      return {0.92, 1.24};
  }
  return {};
}

// The allocator's cache besides: what loading left, gaps, the order of requests.
Factors kept_factors(const Request& request) {
  if (request.lengths.counts.size() > 1) return {0.75, 1.42};
  if (shards(request)) return {0.74, 1.30};
  switch (request.method) {
    case Method::Full:
      return {0.88, 1.28};
    case Method::Lora:  // the low side: loops that compute the loss in 16 bits, compiled ones
      return {0.72, 1.15};
    case Method::Qlora:
      return {0.74, 1.20};
  }
  return {};
}

}  // namespace

Factors memory_factors(const Request& request, const hardware::Device& device, Counter counter) {
  if (device.is_cpu()) return {0.95, 1.05};
  return counter == Counter::Allocated ? live_factors(request) : kept_factors(request);
}

Factors fit_factors(const Request& request, const hardware::Device& device) {
  if (device.is_cpu()) return {0.95, 1.05};
  Factors factors{0.93, 1.07};
  if (request.method == Method::Full) factors = {0.92, 1.10};
  if (request.method == Method::Qlora) factors = {0.92, 1.13};
  if (shards(request)) factors.low -= 0.03, factors.high += 0.05;
  if (request.checkpointing == Checkpointing::Selective) factors.low -= 0.06, factors.high += 0.04;
  return factors;
}

Factors time_factors(const Request& request, const hardware::Device& device, const TimeParts& parts) {
  if (device.is_cpu()) return {0.85, 1.15};
  if (parts.launch > 0.1 * parts.total()) return {0.68, 1.5};
  return shards(request) ? Factors{0.68, 1.5} : Factors{0.74, 1.42};
}

}  // namespace batchwright::plan
