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

// Self-attention of every sequence by itself. q is [rows, heads * head_dim], k and v [rows, kv_heads *
// head_dim], each with its own row stride, so that they may lie side by side; heads / kv_heads neighbouring
// queries share a key and a value. The biases are added here; they may be nullptr.
struct Attention {
  const float *q = nullptr, *k = nullptr, *v = nullptr;
  const float *q_bias = nullptr, *k_bias = nullptr, *v_bias = nullptr;
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1;
  bool causal = false;
  std::int64_t window = 0;  // a query sees so many keys, its own the last; 0: all
  // Not empty: of each sequence only this row of the batch asks. context and lse have one row a sequence
  // then, and the other rows' dq are zero.
  std::span<const std::int32_t> one_query = {};
  DropoutKey dropout = {};
};

// Rotary frequencies times positions: cosine and sine [positions, frequencies], both times `scale`, in
// float32 as Transformers multiplies them.
struct RotaryTable {
  std::span<const float> frequencies = {};
  float scale = 1;
  std::int64_t positions = 0;
  float *cosine = nullptr, *sine = nullptr;
};

// RMSNorm of each head by itself (Qwen3): x[rows, heads * head_dim], rows `stride` apart, becomes normalized
// in place; gamma is the caller's to multiply. inverse_std is [rows, heads].
struct HeadNorm {
  float* x = nullptr;
  std::int64_t rows = 0, heads = 0, head_dim = 0, stride = 0;
  float epsilon = 1e-6f;
  float* inverse_std = nullptr;
};

// Between the two layers of a classification head: few rows, so no vector code.
enum class Squash { Tanh, Relu };

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

  // out[rows, cols] = word[id] + position[position] + type[type_id]; position and type may be nullptr.
  virtual void embed(const TokenBatch& batch, const float* word, const float* position, const float* type,
                     std::int64_t cols, float* out) = 0;
  // Adds d[rows, cols] to the rows of the gradients; each may be nullptr. Tokens `padding_id` give word
  // nothing, wherever they stand: torch's Embedding(padding_idx). -1: no such token.
  virtual void embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols,
                              std::int64_t padding_id, float* word, float* position, float* type) = 0;

  virtual void dropout_bits(const DropoutKey& key, const TokenBatch& batch, std::int64_t cols,
                            std::uint32_t* bits) = 0;
  virtual void dropout_apply(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                             std::int64_t cols, float* out) = 0;
  virtual void dropout_add(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                           std::int64_t cols, float* out) = 0;

  virtual void residual_norm_forward(const ResidualNorm& norm) = 0;
  virtual void norm_backward(const NormGradient& norm) = 0;
  virtual void scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                           std::int64_t cols, float* y) = 0;
  virtual void head_norm_forward(const HeadNorm& norm) = 0;
  // norm.x is the normalized; d [rows, heads * head_dim], rows `d_stride` apart, from the gradient of
  // normalized * gamma to that of the input, in place; dgamma (added to) may be nullptr.
  virtual void head_norm_backward(const HeadNorm& norm, const float* gamma, float* d, std::int64_t d_stride,
                                  float* dgamma) = 0;

  virtual void rotary_table(const RotaryTable& table) = 0;
  virtual void rotate(const TokenBatch& batch, const Rotation& rotation) = 0;

  virtual void bias_activation_forward(Activation kind, float* x, const float* bias, std::int64_t rows,
                                       std::int64_t cols, float* y) = 0;
  virtual void activation_forward(Activation kind, const float* x, std::int64_t count, float* y) = 0;
  virtual void activation_backward(Activation kind, const float* dy, const float* x, std::int64_t count,
                                   float* dx) = 0;
  virtual void swiglu_forward(const float* gate_up, std::int64_t rows, std::int64_t cols, float* y) = 0;
  virtual void swiglu_backward(const float* dy, const float* gate_up, std::int64_t rows, std::int64_t cols,
                               float* d) = 0;
  // x = f(x + bias), and d *= f' from f's output y.
  virtual void bias_squash_forward(Squash kind, float* x, const float* bias, std::int64_t rows,
                                   std::int64_t cols) = 0;
  virtual void squash_backward(Squash kind, const float* y, std::int64_t count, float* d) = 0;

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
                                  const float* dcontext, const AttentionGradient& gradient,
                                  float* scratch) = 0;

  virtual void add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) = 0;
  // Sum over rows of cross-entropy(logits, target); logits [targets, classes] become the gradient of
  // loss_scale * that sum.
  virtual double cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                               double loss_scale) = 0;

  virtual double sum_of_squares(const float* x, std::int64_t count) = 0;
  virtual void adamw(const AdamWUpdate& update) = 0;
  // Rounds x to the numbers that weights, gradients and moments are kept in; they are float32 unless a
  // precision says otherwise.
  virtual void round_stored(float* /*x*/, std::int64_t /*count*/) {}
};

// The device that TrainingOptions::device names: "cpu" (own kernels), "cuda", or "torch-cpu" (the ATen
// reference), computing in the numbers that `precision` names. Throws Error(Unsupported) when this build or
// machine has no such device.
std::unique_ptr<Ops> make_ops(const std::string& device, const std::string& precision = "fp32");

}  // namespace batchwright::engine
