#pragma once

#include <string>

#include "engine/ops.h"

namespace batchwright::engine {

// Every operation in ATen calls on one torch device: the reference that tests hold CpuOps to, and the path
// for devices without kernels of our own. "cuda" is the same code as "cpu" here; it has been run on the CPU
// only so far. Dropout masks are drawn on the host by the documented generator, so they are the same on every
// device.
class TorchOps : public Ops {
 public:
  explicit TorchOps(DeviceKind device) : device_(device) {}

  DeviceKind device() const override { return device_; }
  std::string name() const override;
  int most_threads() const override { return 1; }
  void zero(float* x, std::int64_t count) override;
  void upload(const float* host, std::int64_t count, float* device) override;
  void download(const float* device, std::int64_t count, float* host) override;
  void gemm(const Gemm& g) override;
  void embed(const TokenBatch& batch, const float* word, const float* position, const float* type,
             std::int64_t cols, float* out) override;
  void embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols, std::int64_t padding_id,
                      float* word, float* position, float* type) override;
  void dropout_bits(const DropoutKey& key, const TokenBatch& batch, std::int64_t cols,
                    std::uint32_t* bits) override;
  void dropout_apply(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                     std::int64_t cols, float* out) override;
  void dropout_add(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                   std::int64_t cols, float* out) override;
  void residual_norm_forward(const ResidualNorm& norm) override;
  void norm_backward(const NormGradient& norm) override;
  void scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                   std::int64_t cols, float* y) override;
  void head_norm_forward(const HeadNorm& norm) override;
  void head_norm_backward(const HeadNorm& norm, const float* gamma, float* d, std::int64_t d_stride,
                          float* dgamma) override;
  void rotary_table(const RotaryTable& table) override;
  void rotate(const TokenBatch& batch, const Rotation& rotation) override;
  void bias_activation_forward(Activation kind, float* x, const float* bias, std::int64_t rows,
                               std::int64_t cols, float* y) override;
  void activation_forward(Activation kind, const float* x, std::int64_t count, float* y) override;
  void activation_backward(Activation kind, const float* dy, const float* x, std::int64_t count,
                           float* dx) override;
  void swiglu_forward(const float* gate_up, std::int64_t rows, std::int64_t cols, float* y) override;
  void swiglu_backward(const float* dy, const float* gate_up, std::int64_t rows, std::int64_t cols,
                       float* d) override;
  void bias_squash_forward(Squash kind, float* x, const float* bias, std::int64_t rows,
                           std::int64_t cols) override;
  void squash_backward(Squash kind, const float* y, std::int64_t count, float* d) override;
  void column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) override;
  void add(const float* x, std::int64_t count, float* out) override;
  void take_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols,
                 float* out) override;
  void add_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols, float* out) override;
  std::int64_t attention_scratch(const TokenBatch&, const Attention&) override { return 1; }
  void attention_forward(const TokenBatch& batch, const Attention& attention, float* context, float* lse,
                         float* scratch) override;
  void attention_backward(const TokenBatch& batch, const Attention& attention, const float* lse,
                          const float* dcontext, const AttentionGradient& gradient, float* scratch) override;
  void add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) override;
  double cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                       double loss_scale) override;
  double sum_of_squares(const float* x, std::int64_t count) override;
  void adamw(const AdamWUpdate& update) override;

 private:
  DeviceKind device_;
};

}  // namespace batchwright::engine
