#pragma once

#include "engine/ops.h"

namespace batchwright::engine {

// Vector kernels of the CPU at hand, and the GEMM that the torch wheel links, one thread a call: the stepper
// runs several micro-batches or shards side by side instead. Stateless, so all threads share one.
class CpuOps : public Ops {
 public:
  explicit CpuOps(const Kernels& kernels = best_kernels()) : kernels_(kernels) {}

  DeviceKind device() const override { return DeviceKind::Cpu; }
  std::string name() const override { return std::string("cpu, ") + kernels_.name; }
  int most_threads() const override { return 0; }
  void zero(float* x, std::int64_t count) override;
  void upload(const float* host, std::int64_t count, float* device) override;
  void download(const float* device, std::int64_t count, float* host) override;
  double sum_of_squares(const float* x, std::int64_t count) override {
    return kernels_.sum_of_squares(x, count);
  }
  void adamw(const AdamWUpdate& update) override { kernels_.adamw(update); }

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
  std::int64_t attention_scratch(const TokenBatch& batch, const Attention& attention) override;
  void attention_forward(const TokenBatch& batch, const Attention& attention, float* context, float* lse,
                         float* scratch) override;
  void attention_backward(const TokenBatch& batch, const Attention& attention, const float* lse,
                          const float* dcontext, const AttentionGradient& gradient, float* scratch) override;
  void add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) override;
  double cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                       double loss_scale) override;

 private:
  const Kernels& kernels_;
};

// The calling thread's GEMMs run on one core from here on (the library would otherwise start its own
// threads).
void use_one_gemm_thread();

}  // namespace batchwright::engine
