#pragma once

#include "engine/ops.h"

namespace batchwright::engine {

// Does nothing: a forward and backward through it only takes arena memory, which counts the peak exactly and
// in microseconds. Scratch sizes come from the device that will really run.
class CountingOps final : public Ops {
 public:
  explicit CountingOps(Ops& device) : device_(device) {}

  DeviceKind device() const override { return device_.device(); }
  std::string name() const override { return device_.name(); }
  int most_threads() const override { return device_.most_threads(); }
  void zero(float*, std::int64_t) override {}
  void upload(const float*, std::int64_t, float*) override {}
  void download(const float*, std::int64_t, float*) override {}
  double sum_of_squares(const float*, std::int64_t) override { return 0; }
  void adamw(const AdamWUpdate&) override {}
  void gemm(const Gemm&) override {}
  void embed(const TokenBatch&, const float*, const float*, const float*, std::int64_t, float*) override {}
  void embed_backward(const TokenBatch&, const float*, std::int64_t, std::int64_t, float*, float*,
                      float*) override {}
  void dropout_bits(const DropoutKey&, const TokenBatch&, std::int64_t, std::uint32_t*) override {}
  void dropout_apply(const float*, const std::uint32_t*, float, std::int64_t, std::int64_t, float*) override {
  }
  void dropout_add(const float*, const std::uint32_t*, float, std::int64_t, std::int64_t, float*) override {}
  void residual_norm_forward(const ResidualNorm&) override {}
  void norm_backward(const NormGradient&) override {}
  void scale_shift(const float*, const float*, const float*, std::int64_t, std::int64_t, float*) override {}
  void head_norm_forward(const HeadNorm&) override {}
  void head_norm_backward(const HeadNorm&, const float*, float*, std::int64_t, float*) override {}
  void rotary_table(const RotaryTable&) override {}
  void rotate(const TokenBatch&, const Rotation&) override {}
  void bias_activation_forward(Activation, float*, const float*, std::int64_t, std::int64_t,
                               float*) override {}
  void activation_forward(Activation, const float*, std::int64_t, float*) override {}
  void activation_backward(Activation, const float*, const float*, std::int64_t, float*) override {}
  void swiglu_forward(const float*, std::int64_t, std::int64_t, float*) override {}
  void swiglu_backward(const float*, const float*, std::int64_t, std::int64_t, float*) override {}
  void bias_squash_forward(Squash, float*, const float*, std::int64_t, std::int64_t) override {}
  void squash_backward(Squash, const float*, std::int64_t, float*) override {}
  void column_sums(const float*, std::int64_t, std::int64_t, float*) override {}
  void add(const float*, std::int64_t, float*) override {}
  void take_rows(std::span<const std::int32_t>, const float*, std::int64_t, float*) override {}
  void add_rows(std::span<const std::int32_t>, const float*, std::int64_t, float*) override {}
  std::int64_t attention_scratch(const TokenBatch& batch, const Attention& attention) override {
    return device_.attention_scratch(batch, attention);
  }
  void attention_forward(const TokenBatch&, const Attention&, float*, float*, float*) override {}
  void attention_backward(const TokenBatch&, const Attention&, const float*, const float*,
                          const AttentionGradient&, float*) override {}
  void add_bias(float*, const float*, std::int64_t, std::int64_t) override {}
  double cross_entropy(std::span<const std::int32_t>, float*, std::int64_t, double) override { return 0; }

 private:
  Ops& device_;
};

}  // namespace batchwright::engine
