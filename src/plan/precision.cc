#include "plan/precision.h"

#include <algorithm>

namespace batchwright::plan {
namespace {

bool full_width(ComputeType compute) { return compute == ComputeType::Fp32 || compute == ComputeType::Tf32; }

}  // namespace

double packed_bytes(WeightType weights) {
  switch (weights) {
    case WeightType::Fp32:
      return 4;
    case WeightType::Bf16:
    case WeightType::Fp16:
      return 2;
    case WeightType::Nf4:
      return 0.5 + 4.0 / 64;
    case WeightType::Nf4Double:
      return 0.5 + 1.0 / 64 + 4.0 / (64 * 256);
    case WeightType::Int4:
      return 0.5 + (2 + 0.5) / 128;
    case WeightType::Int8:
      return 1;
  }
  return 4;
}

Precision precision_of(const Request& request) {
  Precision p;
  p.product = full_width(request.compute) ? 4 : 2;
  const bool packed = request.method == Method::Qlora;
  p.packed_weight = packed_bytes(request.weights);
  // Prepared for k-bit training, what is not packed is fp32, and bitsandbytes' layers answer in the type of
  // their input: the whole stream and all outputs are fp32, the products 16-bit.
  p.plain_weight = packed ? (request.kbit_preparation ? 4 : p.product) : p.packed_weight;
  p.trained_weight = p.plain_weight;
  // Accelerate keeps what FSDP trains in fp32 when the products are 16-bit by autocast (mixed precision).
  p.gradient = p.state = p.trained_weight;
  p.adapter = request.adapter_weights == AdapterType::Fp32 ? 4 : 2;
  p.residual = p.plain_weight;
  p.activation = request.kbit_preparation ? p.plain_weight : std::min(p.plain_weight, p.product);
  // With weights that are narrower than the products nothing is cast: PyTorch computes in the weights' type.
  p.autocast = p.plain_weight > p.product;
  // Sharding with mixed precision gathers 16-bit weights: every module computes in 16 bits, the stream
  // included.
  const bool gathers = request.sharding == Sharding::Fsdp || request.sharding == Sharding::Zero1 ||
                       request.sharding == Sharding::Zero2 || request.sharding == Sharding::Zero3;
  if (gathers && p.product < 4) {
    p.residual = p.activation = p.product;
    p.autocast = false;
  }
  return p;
}

}  // namespace batchwright::plan
