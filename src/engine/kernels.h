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

// LayerNorm (Ba et al. 2016), or RMSNorm (Zhang and Sennrich 2019): no mean taken away, no beta.
enum class NormKind { Layer, Rms };

// y = gamma * normalized + beta with normalized = (z - mean) * inverse_std and z = residual + dropout(x +
// bias); all [rows, cols]. residual, bias, keep_bits, beta and the outputs sum (z itself) and y may be
// nullptr; x may equal normalized, and residual may equal sum (in place).
struct ResidualNorm {
  NormKind kind = NormKind::Layer;
  const float* x = nullptr;
  const float* bias = nullptr;
  const std::uint32_t* keep_bits = nullptr;
  float keep_scale = 1;
  const float* residual = nullptr;
  const float* gamma = nullptr;
  const float* beta = nullptr;
  float epsilon = 1e-12f;
  std::int64_t rows = 0, cols = 0;
  float *sum = nullptr, *normalized = nullptr, *inverse_std = nullptr, *y = nullptr;
};

// dz = residual + the gradient of z, from dy; dgamma and dbeta are added to. residual (the gradient that
// reaches z past the norm), dgamma and dbeta may be nullptr; dz may equal dy or residual.
struct NormGradient {
  NormKind kind = NormKind::Layer;
  const float *dy = nullptr, *normalized = nullptr, *inverse_std = nullptr, *gamma = nullptr;
  const float* residual = nullptr;
  std::int64_t rows = 0, cols = 0;
  float *dz = nullptr, *dgamma = nullptr, *dbeta = nullptr;
};

// Rotary positions (Su et al. 2021) in the halves convention of Llama: (low, high) of each head turned by
// position * frequency. x and y are [rows, heads * head_dim] with their own row strides and may be the same;
// cosine and sine [positions, head_dim / 2]. gamma [head_dim] multiplies x first, or is nullptr. backward
// turns the other way: the gradient of x * gamma from that of y.
struct Rotation {
  const float *x = nullptr, *gamma = nullptr, *cosine = nullptr, *sine = nullptr;
  std::int64_t rows = 0, heads = 0, head_dim = 0, x_stride = 0, y_stride = 0;
  float* y = nullptr;
  bool backward = false;
};

// gelu: exact, x Phi(x), its erf by Abramowitz and Stegun 7.1.26, |error| < 1.5e-7. GeluTanh: "gelu_new" and
// "gelu_pytorch_tanh" (Hendrycks and Gimpel 2016, section 2).
enum class Activation { Gelu, GeluTanh };

// One key-value head of one sequence with the `group` query heads that share it (Ainslie et al. 2023; 1 is
// plain multi-head attention). Pointers are at the sequence's first row; member m of the group has its
// queries at q + m * head_dim and its context at context + m * head_dim.
struct AttentionHead {
  const float *q, *k, *v;
  const float *q_bias, *k_bias, *v_bias;  // added here, not before; may be nullptr
  std::int64_t q_stride, k_stride, v_stride, context_stride;
  std::int64_t group, head_dim;
  std::int64_t rows;                  // of the sequence, padding included
  std::int64_t valid;                 // keys that exist; keys at and after it are masked
  std::int64_t first_query, queries;  // the rows that ask
  float scale;                        // of the scores
  bool causal;
  std::int64_t window;             // a query sees so many keys, its own the last; 0: all
  const std::uint32_t* keep_bits;  // [group][queries][ceil(rows / 32)], nullptr: no dropout
  float keep_scale;
};

// Where attention_backward writes, at the sequence's first row, rows `stride` apart: dq of the whole group.
struct AttentionGradient {
  float *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::int64_t stride = 0;
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
  // keep_bits for the attention probabilities of one sequence, whose rows first_query .. first_query +
  // queries - 1 ask: [heads][queries][ceil(rows / 32)].
  void (*attention_dropout_bits)(const DropoutKey& key, std::uint32_t example, std::int64_t heads,
                                 std::int64_t first_query, std::int64_t queries, std::int64_t rows,
                                 std::uint32_t* keep_bits);
  // out = x * keep * scale
  void (*dropout_apply)(const float* x, std::int64_t x_stride, const std::uint32_t* keep_bits, float scale,
                        std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);
  // out += x * keep * scale
  void (*dropout_add)(const float* x, std::int64_t x_stride, const std::uint32_t* keep_bits, float scale,
                      std::int64_t rows, std::int64_t cols, float* out, std::int64_t out_stride);

  void (*residual_norm_forward)(const ResidualNorm& norm);
  void (*norm_backward)(const NormGradient& norm);
  // y = normalized * gamma + beta; beta may be nullptr
  void (*scale_shift)(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                      std::int64_t cols, float* y);
  void (*rotate)(const Rotation& rotation, const std::uint32_t* positions);  // a position a row

  // x += bias, in place; y = activation(x).
  void (*bias_activation_forward)(Activation kind, float* x, const float* bias, std::int64_t rows,
                                  std::int64_t cols, float* y);
  void (*activation_forward)(Activation kind, const float* x, std::int64_t count, float* y);
  // dx = dy * activation'(x); dx may equal dy.
  void (*activation_backward)(Activation kind, const float* dy, const float* x, std::int64_t count,
                              float* dx);
  // y [rows, cols] = silu(gate) * up (Shazeer 2020), gate and up side by side in gate_up [rows, 2 * cols].
  void (*swiglu_forward)(const float* gate_up, std::int64_t rows, std::int64_t cols, float* y);
  // d [rows, 2 * cols], the gradient of gate_up, may be gate_up itself.
  void (*swiglu_backward)(const float* dy, const float* gate_up, std::int64_t rows, std::int64_t cols,
                          float* d);
  // out[col] += sum over rows of x
  void (*column_sums)(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t cols, float* out);
  void (*add)(const float* x, std::int64_t count, float* out);  // out += x

  // Workspace of both attention functions, in floats, for a sequence of `rows` of which `queries` ask.
  std::int64_t (*attention_scratch)(std::int64_t rows, std::int64_t queries, std::int64_t head_dim);
  // context [queries, group * head_dim] and, per member and query, the log-sum-exp of the scores.
  void (*attention_forward)(const AttentionHead& head, float* context, float* lse, float* scratch);
  // From dcontext (context's strides); the probabilities are computed again from lse.
  void (*attention_backward)(const AttentionHead& head, const float* lse, const float* dcontext,
                             const AttentionGradient& gradient, float* scratch);

  // Cross-entropy of one row of logits with its target; the row becomes its gradient times `scale`.
  double (*cross_entropy)(float* logits, std::int64_t classes, std::int64_t target, float scale);

  double (*sum_of_squares)(const float* x, std::int64_t count);
  void (*adamw)(const AdamWUpdate& update);
};

const Kernels& baseline_kernels();
const Kernels* avx2_kernels();    // nullptr when this build or CPU has no AVX2 + FMA
const Kernels* avx512_kernels();  // nullptr when this build or CPU has no AVX-512 F, BW, DQ, VL
const Kernels&
best_kernels();  // the widest that this CPU runs; BATCHWRIGHT_KERNELS=baseline|avx2|avx512 overrides

}  // namespace batchwright::engine
