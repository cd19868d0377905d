#include "plan/native_time.h"

#include <algorithm>
#include <cmath>

#include "plan/gemm.h"

namespace batchwright::plan {
namespace {

// Of the rate that plain products reach: those as thin as an adapter's rank, and attention's small ones.
constexpr double kThinShare = 0.4, kAttentionShare = 0.5;
// Floats that norms, activations, masks and sums read or write for every float of width, forward and
// backward. They are computed more than moved (masks' random bits, exponentials, error functions): each takes
// the time of so many operations of a large product (perf record of MiniLM with LoRA at 128 tokens, AVX-512:
// 19 to 22 % of a step from 32x1 to 1x32).
constexpr double kHiddenTraffic = 34, kWideTraffic = 7, kFloatWork = 95;
// Operations that a layer starts in both passes, each a call and a loop's entry.
constexpr double kLayerOperations = 120;

class NativeStep {
 public:
  NativeStep(const ModelShape& shape, const Request& request, const hardware::Device& device, double examples,
             double length)
      : shape_(shape),
        request_(request),
        device_(device),
        examples_(examples),
        length_(length),
        rows_(examples * length),
        threads_(std::max(1, device.multiprocessors)),
        rate_(gemm_rate(device, hardware::Arithmetic::Fp32, rows_ * threads_, 1, 1) / threads_) {}

  double products() const {
    double flops = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) flops += layer_flops(layer);
    for (const LinearShape& linear : shape_.outside) {
      const bool pooled = shape_.head == model::Head::SequenceClassification;
      flops += 2 * (pooled ? examples_ : rows_) * linear.weights() * (request_.trains_all() ? 3 : 2);
    }
    double thin = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) thin += adapter_flops(layer);
    return flops / rate_ + thin / (rate_ * kThinShare);
  }

  double attention() const {
    double queries = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) queries += rows_of(layer, Role::AttentionOutput);
    const double causal = shape_.encoder() ? 1 : 0.5;
    const double forward =
        4 * queries * length_ * static_cast<double>(shape_.query_width()) * causal;  // two products
    return forward * (forward_passes() + 2.5) / (rate_ * kAttentionShare);
  }

  double elementwise() const {
    double floats = 0;
    for (std::size_t layer = 0; layer < layers(); ++layer) {
      floats += rows_of(layer, Role::Down) * (kHiddenTraffic * static_cast<double>(shape_.config.hidden) +
                                              kWideTraffic * static_cast<double>(shape_.config.intermediate));
    }
    return floats * kFloatWork * threads_ / best_gemm_rate(device_, hardware::Arithmetic::Fp32);
  }

  double operations() const {
    return kLayerOperations * static_cast<double>(layers()) * device_.operation_seconds;
  }

 private:
  std::size_t layers() const { return static_cast<std::size_t>(shape_.config.layers); }
  double forward_passes() const { return request_.checkpointing == Checkpointing::None ? 1 : 2; }

  // A classifier reads its last layer's first token.
  double rows_of(std::size_t layer, Role role) const {
    const bool first_token = shape_.encoder() && shape_.head == model::Head::SequenceClassification;
    const bool all = role == Role::Key || role == Role::Value || role == Role::FusedQkv;
    return first_token && layer + 1 == layers() && !all ? examples_ : rows_;
  }

  double layer_flops(std::size_t layer) const {
    double flops = 0;
    for (const LinearShape& linear : shape_.block) {
      const bool reads_input = linear.role == Role::Query || linear.role == Role::Key ||
                               linear.role == Role::Value || linear.role == Role::FusedQkv;
      double passes = forward_passes() + 1;
      if (layer == 0 && reads_input && !request_.trains_all()) passes -= 1;
      if (request_.trains_all()) passes += 1;
      flops += 2 * rows_of(layer, linear.role) * linear.weights() * passes;
    }
    return flops;
  }

  double adapter_flops(std::size_t layer) const {
    double flops = 0;
    for (const LinearShape& linear : shape_.block) {
      if (!linear.lora) continue;
      const auto width = static_cast<double>(linear.in + linear.out);
      flops += 2 * rows_of(layer, linear.role) * static_cast<double>(request_.lora_rank) * width *
               (forward_passes() + 2);
    }
    return flops;
  }

  const ModelShape& shape_;
  const Request& request_;
  const hardware::Device& device_;
  double examples_, length_, rows_;
  int threads_;
  double rate_;  // of one thread, in products of its rows
};

}  // namespace

TimeParts native_time(const ModelShape& shape, const Request& request, const hardware::Device& device,
                      const Split& split) {
  const std::int64_t threads = std::max(1, device.multiprocessors);
  const bool shared = split.micro_batch >= threads;
  const std::int64_t share = shared ? (split.micro_batch + threads - 1) / threads : split.micro_batch;
  const std::int64_t turns =
      shared ? split.accumulation_steps : (split.accumulation_steps + threads - 1) / threads;
  const double length = request.lengths.expected_longest(split.micro_batch);
  const NativeStep step(shape, request, device, static_cast<double>(share), length);
  const auto repeats = static_cast<double>(turns);
  TimeParts parts;
  parts.products = repeats * step.products();
  parts.attention = repeats * step.attention();
  parts.elementwise = repeats * step.elementwise();
  parts.launch = repeats * step.operations();
  const double trained = request.trains_all()
                             ? shape.parameters
                             : shape.adapter_parameters(request.lora_rank) + shape.head_parameters;
  // Gradients of every thread summed, two moments and the weight read and written.
  parts.optimizer =
      trained * 4 * static_cast<double>(threads + 8) / std::max(1.0, device.bandwidth_bytes_per_second);
  parts.fixed = 1e-3;
  return parts;
}

}  // namespace batchwright::plan
