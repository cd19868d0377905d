#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "engine/kernels.h"
#include "engine/memory.h"
#include "engine/token_batch.h"

namespace batchwright::engine {

// C (+)= alpha op(A) op(B), row-major: op(A) is [m, k], op(B) [k, n], C [m, n]; lda, ldb, ldc count floats a
// row.
struct Gemm {
  bool transpose_a = false, transpose_b = false;
  std::int64_t m = 0, n = 0, k = 0;
  float alpha = 1;
  const float* a = nullptr;
  std::int64_t lda = 0;
  const float* b = nullptr;
  std::int64_t ldb = 0;
  float beta = 0;
  float* c = nullptr;
  std::int64_t ldc = 0;
};

// LayerNorm(residual + dropout(x + bias)); pointers as in Kernels::residual_norm_forward.
struct ResidualNorm {
  const float* x = nullptr;
  const float* bias = nullptr;
  const std::uint32_t* keep_bits = nullptr;
  float keep_scale = 1;
  const float* residual = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float epsilon = 1e-12f;
  std::int64_t rows = 0, cols = 0;
  float *normalized = nullptr, *inverse_std = nullptr, *y = nullptr;
};

// Multi-head self-attention over a fused [rows, 3 * heads * head_dim] projection (q, k, v side by side).
struct Attention {
  const float* qkv = nullptr;
  const float* bias = nullptr;  // [3 * heads * head_dim], added here
  std::int64_t heads = 0, head_dim = 0;
  bool causal = false;
  // Only each sequence's first row asks: context and lse have one row a sequence, the other rows' dq are
  // zero.
  bool first_query_only = false;
  DropoutKey dropout;
};

// What a device can do. All pointers but those in TokenBatch are device memory. Two implementations: CpuOps
// (vector kernels and a GEMM library, no ATen) and TorchOps (ATen calls on any device); CountingOps does
// nothing, to size arenas.
class Ops {
 public:
  virtual ~Ops() = default;

  virtual DeviceKind device() const = 0;
  virtual std::string name() const = 0;  // for people: "cpu, avx512"
  virtual int most_threads() const = 0;  // how many threads may use it at once; 0: any number
  virtual void zero(float* x, std::int64_t count) = 0;
  virtual void upload(const float* host, std::int64_t count, float* device) = 0;
  virtual void download(const float* device, std::int64_t count, float* host) = 0;

  virtual void gemm(const Gemm& g) = 0;

  // out[rows, cols] = word[id] + position[position] + type[type_id]; type may be nullptr.
  virtual void embed(const TokenBatch& batch, const float* word, const float* position, const float* type,
                     std::int64_t cols, float* out) = 0;
  // Adds d[rows, cols] to the rows of the gradients; each may be nullptr.
  virtual void embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols, float* word,
                              float* position, float* type) = 0;

  virtual void dropout_bits(const DropoutKey& key, const TokenBatch& batch, std::int64_t cols,
                            std::uint32_t* bits) = 0;
  virtual void dropout_apply(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                             std::int64_t cols, float* out) = 0;
  virtual void dropout_add(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                           std::int64_t cols, float* out) = 0;

  virtual void residual_norm_forward(const ResidualNorm& norm) = 0;
  virtual void norm_backward(const float* dy, const float* normalized, const float* inverse_std,
                             const float* gamma, std::int64_t rows, std::int64_t cols, float* dz,
                             float* dgamma, float* dbeta) = 0;
  virtual void scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                           std::int64_t cols, float* y) = 0;

  virtual void bias_gelu_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols,
                                 float* y) = 0;
  virtual void gelu_forward(const float* x, std::int64_t count, float* y) = 0;
  virtual void gelu_backward(const float* dy, const float* x, std::int64_t count, float* dx) = 0;
  virtual void bias_tanh_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols) = 0;
  virtual void tanh_backward(const float* y, std::int64_t count, float* d) = 0;  // d *= 1 - y^2

  virtual void column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) = 0;
  virtual void add(const float* x, std::int64_t count, float* out) = 0;
  // out[i] = x[places[i]], rows of `cols`; and its transpose: out[places[i]] += x[i].
  virtual void take_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols,
                         float* out) = 0;
  virtual void add_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols,
                        float* out) = 0;

  virtual std::int64_t attention_scratch(const TokenBatch& batch, const Attention& attention) = 0;
  virtual void attention_forward(const TokenBatch& batch, const Attention& attention, float* context,
                                 float* lse, float* scratch) = 0;
  virtual void attention_backward(const TokenBatch& batch, const Attention& attention, const float* lse,
                                  const float* dcontext, float* dqkv, float* scratch) = 0;

  virtual void add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) = 0;
  // Sum over rows of cross-entropy(logits, target); logits [targets, classes] become the gradient of
  // loss_scale * that sum.
  virtual double cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                               double loss_scale) = 0;

  virtual double sum_of_squares(const float* x, std::int64_t count) = 0;
  virtual void adamw(const AdamWUpdate& update) = 0;
};

// The device that TrainingOptions::device names: "cpu" (own kernels), "cuda", or "torch-cpu" (the ATen
// reference). Throws Error(Unsupported) when this build or machine has no such device.
std::unique_ptr<Ops> make_ops(const std::string& device);

}  // namespace batchwright::engine
