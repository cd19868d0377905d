#include "plan/time.h"

#include <algorithm>
#include <cmath>

#include "plan/gemm.h"
#include "plan/native_time.h"

namespace batchwright::plan {
namespace {

// Operations that one block's forward pass starts (norms and rotary embedding in Python operators), and what
// an adapter adds to each layer it wraps: cast, dropout, two products, scaling, addition, cast.
constexpr double kBlockOperations = 46, kAdapterOperations = 7;
// Host seconds an operation. Fitted together: 3.05 ms a layer for Megatron's blocks with checkpointing
// (VIA-Research/vTrain, h = 1024, micro-batch 1), 4.7 ms for LoRA on five layers with checkpointing (QwenLM,
// Qwen-7B, 256 tokens), 5.1 ms for LoRA on seven (the seed experiment on a T4).
constexpr double kOperationSeconds = 18e-6, kBackwardOperations = 1.5, kTuringHost = 1.5, kFabricHost = 1.25;
// How far the host's and the device's time overlap: exponent of their norm. 3: queued ahead (fitted on
// vTrain's rows at micro-batch 1 and 2). 1: not at all: Trainer loops show it on T4 and L4, where 4
// micro-steps cost 164 ms each beyond the time their examples take (the seed experiment).
constexpr double kQueuedOverlap = 3, kTrainerOverlap = 1.5, kFabricOverlap = 1;
// Plain fp32 operations that an element costs as it is unpacked: bitsandbytes' kernel, and GPTQ's.
constexpr double kLookupOperations = 65, kGptqOperations = 160;
constexpr double kBandwidthShare = 0.8;  // reached in elementwise kernels
// Attention in one kernel: the share of the best product rate, and the sequence at which half of it is
// reached. Dao 2023 (FlashAttention-2) measures 50 to 73 % of an A100's peak over sequences of 512 to 16k.
constexpr double kFlashShare = 0.68, kFlashHalfLength = 512, kBatchedShare = 0.5, kEfficientShare = 0.5;
// Bytes moved for every byte that the forward pass saves: written and read again, then read and answered by a
// gradient in the backward pass.
constexpr double kForwardTraffic = 1.6, kBackwardTraffic = 2.4;
// Modules written in Python operators read and write every intermediate; fused kernels (Liger and the like,
// which come with a fused loss) do not. fms-acceleration's runs with and without them differ by 13 % of a
// step.
constexpr double kUnfusedTraffic = 2.2;
// Attention in Python operators reads and writes every score again and again: product, scaling, mask, casts,
// softmax, dropout. Times a score's bytes in the products' type and in the softmax's, forward and backward
// (the operators of Transformers' eager attention, counted).
constexpr double kScoreForward[] = {5, 6}, kScoreBackward[] = {6, 7};
// Between nodes of 8 devices, a device's share of the network (mosaicml/llm-foundry: 1600 Gb/s a node).
constexpr double kNetworkBytesPerSecond = 100e9;
constexpr double kNodeDevices = 8, kHiddenCommunication = 0.85;

// Hooks of ZeRO-3 and FSDP around every block, forward and backward: QwenLM's full training of 1.8B on one
// device and of 7B on two takes 0.26 and 0.5 s a micro-step however short its sequences, fms-acceleration's
// FSDP 0.5.
constexpr double kGatherHostSeconds = 8e-3;

double norm_of(double a, double b, double exponent) {
  return std::pow(std::pow(a, exponent) + std::pow(b, exponent), 1 / exponent);
}

// FlashAttention needs Ampere; before it, PyTorch takes the memory-efficient kernel.
bool has_flash(const hardware::Device& device) {
  return device.architecture != "Turing" && device.architecture != "Volta" && device.architecture != "Pascal";
}

bool shards_weights(const Request& request) {
  return request.devices > 1 && (request.sharding == Sharding::Fsdp || request.sharding == Sharding::Zero3);
}

}  // namespace

TimeModel::TimeModel(const ModelShape& shape, const Request& request, const hardware::Device& device)
    : shape_(shape),
      request_(request),
      device_(device),
      arithmetic_(arithmetic_of(request, device)),
      precision_(precision_of(request)),
      block_(block_memory(shape, request, precision_)),
      loss_(loss_memory(shape, request, precision_)) {}

double TimeModel::forward_passes() const {
  switch (request_.checkpointing) {
    case Checkpointing::None:
      return 1;
    case Checkpointing::Full:
      return 2;
    case Checkpointing::Selective:
      return 1.5;
  }
  return 1;
}

double TimeModel::linear_seconds(const LinearShape& linear, double tokens, bool trained,
                                 double passes) const {
  const auto in = static_cast<double>(linear.in), out = static_cast<double>(linear.out);
  double rows = tokens;
  if (linear.count > 1)
    rows *= static_cast<double>(shape_.config.experts_per_token) / static_cast<double>(linear.count);
  const double flops = 2 * rows * in * out * static_cast<double>(linear.count);
  double seconds = passes * flops / gemm_rate(device_, arithmetic_, rows, out, in) +
                   flops / gemm_rate(device_, arithmetic_, rows, in, out);
  if (trained) seconds += flops / gemm_rate(device_, arithmetic_, out, in, rows);
  // A product cannot be faster than reading its weights.
  const double bytes = linear.weights() * precision_.product * (passes + 1);
  seconds = std::max(seconds, bytes / (kBandwidthShare * device_.bandwidth_bytes_per_second));
  if (!linear.lora) return seconds;
  // An adapter's products are as thin as its rank: bound by reading the layer's input and writing its output.
  const double adapter_bytes = rows * (in + out) * precision_.product * (2 * passes + 4);
  return seconds + adapter_bytes / (kBandwidthShare * device_.bandwidth_bytes_per_second);
}

double TimeModel::product_seconds(double tokens) const {
  double block = 0;
  for (const LinearShape& linear : shape_.block) {
    block += linear_seconds(linear, tokens, request_.trains_all(), forward_passes());
  }
  double outside = 0;
  if (shape_.head != model::Head::SequenceClassification) {
    for (const LinearShape& linear : shape_.outside) {
      outside += linear_seconds(linear, tokens, request_.trains_all(), 1);
    }
  }
  return block * static_cast<double>(shape_.config.layers) + outside;
}

double TimeModel::attention_seconds(double tokens, double length) const {
  const bool eager = request_.attention == Attention::Eager;
  const double causal = shape_.encoder() || eager ? 1 : 0.5;
  const double forward = 4 * tokens * length * static_cast<double>(shape_.query_width()) * causal;
  const double flops = forward * (forward_passes() + 2.5);  // the backward pass has five products for two
  // Batched products of short rows on the one hand, one kernel on the other.
  const double share = eager || device_.is_cpu() ? kBatchedShare
                                                 : kFlashShare * length / (length + kFlashHalfLength) *
                                                       (has_flash(device_) ? 1 : kEfficientShare);
  return flops / (best_gemm_rate(device_, arithmetic_) * share) * static_cast<double>(shape_.config.layers);
}

// Bytes a token that a block's elementwise kernels move.
double TimeModel::elementwise_traffic(double length) const {
  const bool operators = request_.loss == Loss::FullLogits;
  const bool unfused = operators && request_.framework == Framework::Transformers;
  const bool scores_unfused = operators && block_.scores > 0;
  const double kept = block_.saved - (scores_unfused ? block_.scores : 0);
  double bytes =
      kept * (kForwardTraffic * forward_passes() + kBackwardTraffic) * (unfused ? kUnfusedTraffic : 1);
  if (scores_unfused) {
    const double type = precision_.product, softmax = precision_.autocast ? 4 : type;
    const double forward = kScoreForward[0] * type + kScoreForward[1] * softmax;
    const double backward = kScoreBackward[0] * type + kScoreBackward[1] * softmax;
    bytes += (forward * forward_passes() + backward) * static_cast<double>(shape_.config.heads) * length;
  }
  return bytes;
}

double TimeModel::elementwise_seconds(double tokens, double length) const {
  return elementwise_traffic(length) * tokens * static_cast<double>(shape_.config.layers) /
         (kBandwidthShare * device_.bandwidth_bytes_per_second);
}

double TimeModel::loss_seconds(double tokens) const {
  const double bytes = 2 * (loss_.forward + loss_.backward) + 4 * loss_.final_states;
  return bytes * tokens / (kBandwidthShare * device_.bandwidth_bytes_per_second);
}

double TimeModel::unpacking_seconds() const {
  if (request_.method != Method::Qlora) return 0;
  const double packed = shape_.block_linear_parameters * static_cast<double>(shape_.config.layers);
  // Read packed, write 16-bit, once a pass and once for the backward pass; the product counts its own
  // reading. As slow as the memory or as the arithmetic of the lookup, whichever is slower.
  const double moved = (precision_.packed_weight + precision_.product) /
                       (kBandwidthShare * device_.bandwidth_bytes_per_second);
  const double computed = (request_.weights == WeightType::Int4 ? kGptqOperations : kLookupOperations) /
                          device_.flops(hardware::Arithmetic::Fp32);
  return packed * std::max(moved, computed) * (forward_passes() + 1);
}

double TimeModel::launch_seconds() const {
  double operations = kBlockOperations;
  for (const LinearShape& linear : shape_.block) {
    if (linear.lora) operations += kAdapterOperations * static_cast<double>(linear.count);
    if (linear.count > 1) operations += 4 * static_cast<double>(linear.count);
  }
  double operation = device_.operation_seconds > 0 ? device_.operation_seconds : kOperationSeconds;
  if (device_.architecture == "Turing") operation *= kTuringHost;
  if (request_.framework == Framework::LitGpt) operation *= kFabricHost;
  const double block = operations * operation * (forward_passes() + kBackwardOperations);
  const bool hooks = shards_weights(request_) || request_.sharding == Sharding::Zero3;
  const double gathers = hooks && request_.framework == Framework::Transformers ? kGatherHostSeconds : 0;
  const double ends = 100 * operation;  // embedding, loss, the loop around them
  return (block + gathers) * static_cast<double>(shape_.config.layers) + ends;
}

double TimeModel::optimizer_seconds() const {
  double trained = request_.trains_all() ? shape_.parameters
                                         : shape_.adapter_parameters(request_.lora_rank) +
                                               shape_.extra_trained + shape_.head_parameters;
  if (request_.devices > 1 && request_.sharding != Sharding::Ddp && request_.sharding != Sharding::None) {
    trained /= static_cast<double>(request_.devices);
  }
  const double type = request_.trains_all() ? std::max(precision_.state, 2.0) : precision_.adapter;
  // Fused: four tensors read and three written; foreach: a kernel for each of its eleven operations; the norm
  // for clipping reads the gradients twice.
  const double passes = request_.optimizer == Optimizer::AdamW ? 18 : 9;
  double seconds = trained * type * passes / (kBandwidthShare * device_.bandwidth_bytes_per_second);
  if (request_.offload != Offload::None) seconds += trained * 14 / 20e9;  // through host memory, on the CPU
  return seconds;
}

// A CPU does its own host work: nothing overlaps. Loops that read the loss of every micro-batch wait for the
// device.
double TimeModel::overlap_exponent() const {
  if (device_.is_cpu()) return 1;
  if (request_.framework == Framework::LitGpt) return kFabricOverlap;
  return request_.framework == Framework::Transformers ? kTrainerOverlap : kQueuedOverlap;
}

TimeParts TimeModel::predict(const Split& split) const {
  if (request_.framework == Framework::Native && device_.is_cpu())
    return native_time(shape_, request_, device_, split);
  const double length = request_.lengths.expected_longest(split.micro_batch);
  const double tokens = static_cast<double>(split.micro_batch) * length;
  const auto steps = static_cast<double>(split.accumulation_steps);
  TimeParts parts;
  parts.products = steps * product_seconds(tokens);
  parts.attention = steps * attention_seconds(tokens, length);
  parts.elementwise = steps * elementwise_seconds(tokens, length);
  parts.loss = steps * loss_seconds(tokens);
  parts.unpacking = steps * unpacking_seconds();
  const double device_time =
      parts.products + parts.attention + parts.elementwise + parts.loss + parts.unpacking;
  const double overlap = overlap_exponent();
  parts.launch = norm_of(device_time, steps * launch_seconds(), overlap) - device_time;
  parts.optimizer = optimizer_seconds();
  parts.fixed = device_.is_cpu() ? 2e-3 : 8e-3;
  const auto n = static_cast<double>(split.devices);
  if (n > 1) {
    const double link = n > kNodeDevices ? std::min(device_.link_bytes_per_second, kNetworkBytesPerSecond)
                                         : device_.link_bytes_per_second;
    const double trained =
        request_.trains_all() ? shape_.parameters : shape_.adapter_parameters(request_.lora_rank);
    double bytes = 2 * trained * precision_.gradient * (n - 1) / n;
    if (shards_weights(request_)) bytes += 2 * steps * shape_.parameters * precision_.product * (n - 1) / n;
    const double seconds = bytes / (0.7 * link);
    // Gathered weights hide behind the computation, as far as that lasts; gradients under DDP hardly do.
    const double hidden = shards_weights(request_) ? kHiddenCommunication * device_time : 0;
    parts.communication = seconds - std::min(seconds, hidden);
  }
  return parts;
}

}  // namespace batchwright::plan
