#include "plan/interval.h"

#include <cmath>

namespace batchwright::plan {
namespace {

bool shards(const Request& request) {
  return request.devices > 1 && request.sharding != Sharding::None && request.sharding != Sharding::Ddp;
}

// What a framework's live tensors take is counted; what its version keeps besides is not.
Factors live_factors(const Request& request) {
  const bool full = request.method == Method::Full;
  // Whole gradients that pile up before they are scattered, and roots that are gathered once more.
  if (shards(request)) return {0.93, full ? 1.35 : 1.27};
  if (request.method != Method::Qlora) return {0.91, 1.09};
  // bitsandbytes' versions keep from nothing to a block's inputs twice: most where every block stays.
  return {0.94, request.checkpointing == Checkpointing::None ? 1.24 : 1.20};
}

// The allocator's cache besides: what loading left, gaps, the order of requests. The low side of loops that
// are not Transformers' own: some compute the loss in 16 bits, or are compiled.
Factors kept_factors(const Request& request) {
  if (request.lengths.counts.size() > 1) return {0.75, 1.42};
  if (shards(request)) return {0.74, 1.30};
  const bool trainer = request.framework == Framework::Transformers;
  return {trainer ? 0.86 : 0.79, request.method == Method::Full ? 1.27 : 1.19};
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
  // Hosts differ more than devices do, and most where hooks run around every block.
  if (parts.launch > 0.1 * parts.total()) return {0.74, shards(request) ? 1.60 : 1.42};
  return shards(request) ? Factors{0.85, 1.40} : Factors{0.83, 1.36};
}

}  // namespace batchwright::plan
