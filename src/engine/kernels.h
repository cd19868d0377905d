#pragma once

#include <cstddef>
#include <cstdint>

namespace batchwright::engine {

// Which random numbers a dropout site draws. The same key gives the same mask whatever the micro-batch, the
// layout, the thread or the machine. Philox4x32 with 7 rounds (the fewest that pass BigCrush: Salmon et al.,
// SC 2011, table 2):
//   key      seed
//   counter  { element block, position | layer << 16 | site << 24, example, step }
// An element is kept when its 16-bit word is at least `threshold` = round(p * 65536), so p is exact to 1.6e-5
// and the scale 1 / (1 - threshold / 65536) is exact for the probability that is really used.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  std::uint32_t layer_and_site = 0;  // layer << 16 | site << 24
  std::uint32_t threshold = 0;       // 0: keep everything
};

// One head of one sequence. q, k, v point at the sequence's first row in the fused projection; rows `stride`
// apart.
struct AttentionHead {
  const float *q, *k, *v;                 // [rows, head_dim], row stride `stride`
  const float *q_bias, *k_bias, *v_bias;  // [head_dim]; added here, not before
  std::int64_t stride;
  std::int64_t queries;  // rows that ask: rows, or 1 when only the first row's context is wanted
  std::int64_t rows;     // rows of the sequence, padding included
  std::int64_t valid;    // keys that exist; keys at and after it are masked
  std::int64_t head_dim;
  float scale;  // 1 / sqrt(head_dim)
  bool causal;
  const std::uint32_t* keep_bits;  // [queries, ceil(rows / 32)], nullptr: no dropout
  float keep_scale;
};

// One AdamW pass (Loshchilov and Hutter 2019, as torch.optim.AdamW) over `count` adjacent weights; the
// gradient is read scaled by gradient_scale, which is how clipping is applied. bias_correction = 1 -
// beta^step.
struct AdamWUpdate {
  float* value = nullptr;
  const float* gradient = nullptr;
  float *moment1 = nullptr, *moment2 = nullptr;
  std::int64_t count = 0;
  float gradient_scale = 1, learning_rate = 0, beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f,
        weight_decay = 0;
  float bias_correction1 = 1, bias_correction2 = 1;
};

// The vector code for one instruction set: a table of plain functions, chosen once at start.
// Row-major float32 everywhere; `stride` counts floats between rows; counts may be any positive number.
struct Kernels {
  const char* name;  // "avx512", "avx2", "baseline"

  // keep_bits[row][col / 32] for a matrix of `cols` columns; positions[row] and examples[row] key the row.
  void (*dropout_bits)(const DropoutKey& key, const std::uint32_t* positions, const std::uint32_t* examples,
                       std::int64_t rows, std::int64_t cols, std::uint32_t* keep_bits);
  // keep_bits for the attention probabilities of one sequence: [heads][queries][ceil(rows / 32)].
  void (*attention_dropout_bits)(const DropoutKey& key, std::uint32_t example, std::int64_t heads,
                                 std::int64_t queries, std::int64_t rows, std::uint32_t* keep_bits);
  // out = x * keep * scale
  void (*dropout_apply)(const float* x, std::int64_t x_stride, const std::uint32_t* keep_bits, float scale,
                        std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);
  // out += x * keep * scale
  void (*dropout_add)(const float* x, std::int64_t x_stride, const std::uint32_t* keep_bits, float scale,
                      std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);

  // y = LayerNorm(residual + dropout(x + bias)); saves normalized = (z - mean) / std and inverse_std for
  // backward. residual, bias and keep_bits may be nullptr. x may equal normalized (in place).
  void (*residual_norm_forward)(const float* x, const float* bias, const std::uint32_t* keep_bits,
                                float keep_scale, const float* residual, const float* gamma,
                                const float* beta, float epsilon, std::int64_t rows, std::int64_t cols,
                                float* normalized, float* inverse_std, float* y);
  // dz (the gradient of z, which is also the residual's) from dy. dgamma, dbeta (accumulated) may be nullptr.
  // dz may equal dy.
  void (*norm_backward)(const float* dy, const float* normalized, const float* inverse_std,
                        const float* gamma, std::int64_t rows, std::int64_t cols, float* dz, float* dgamma,
                        float* dbeta);
  // y = normalized * gamma + beta
  void (*scale_shift)(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                      std::int64_t cols, float* y);

  // x += bias, in place; y = gelu(x), exact (erf): Abramowitz and Stegun 7.1.26, |error of erf| < 1.5e-7.
  void (*bias_gelu_forward)(float* x, const float* bias, std::int64_t rows, std::int64_t cols, float* y);
  void (*gelu_forward)(const float* x, std::int64_t count, float* y);
  // dx = dy * gelu'(x); dx may equal dy.
  void (*gelu_backward)(const float* dy, const float* x, std::int64_t count, float* dx);
  // out[col] += sum over rows of x
  void (*column_sums)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols, float* out);
  void (*add)(const float* x, std::int64_t count, float* out);  // out += x

  // Workspace of both attention functions, in floats, for a sequence of `rows`.
  std::int64_t (*attention_scratch)(std::int64_t rows, std::int64_t head_dim);
  // context [queries, head_dim] (row stride context_stride) and, per row, log-sum-exp of the scores.
  void (*attention_forward)(const AttentionHead& head, float* context, std::int64_t context_stride,
                            float* lse, float* scratch);
  // dq, dk, dv [rows, head_dim] (row stride head.stride) from dcontext; the probabilities are recomputed from
  // lse.
  void (*attention_backward)(const AttentionHead& head, const float* lse, const float* dcontext,
                             std::int64_t context_stride, float* dq, float* dk, float* dv, float* scratch);

  double (*sum_of_squares)(const float* x, std::int64_t count);
  void (*adamw)(const AdamWUpdate& update);
};

const Kernels& baseline_kernels();
const Kernels* avx2_kernels();    // nullptr when this build or CPU has no AVX2 + FMA
const Kernels* avx512_kernels();  // nullptr when this build or CPU has no AVX-512 F, BW, DQ, VL
const Kernels&
best_kernels();  // the widest that this CPU runs; BATCHWRIGHT_KERNELS=baseline|avx2|avx512 overrides

}  // namespace batchwright::engine
