#include "engine/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>

// The GEMM that the torch wheel carries (MKL on x86), by its Fortran name: an ATen call would cost
// microseconds a multiplication, and small micro-batches make thousands of them.
extern "C" {
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
            const float* alpha, const float* a, const int* lda, const float* b, const int* ldb,
            const float* beta, float* c, const int* ldc);
int MKL_Set_Num_Threads_Local(int threads) __attribute__((weak));
}

namespace batchwright::engine {

void use_one_gemm_thread() {
  if (MKL_Set_Num_Threads_Local != nullptr) MKL_Set_Num_Threads_Local(1);
}

void CpuOps::zero(float* x, std::int64_t count) {
  std::memset(x, 0, static_cast<std::size_t>(count) * sizeof(float));
}

void CpuOps::upload(const float* host, std::int64_t count, float* device) {
  std::memcpy(device, host, static_cast<std::size_t>(count) * sizeof(float));
}

void CpuOps::download(const float* device, std::int64_t count, float* host) {
  std::memcpy(host, device, static_cast<std::size_t>(count) * sizeof(float));
}

void CpuOps::gemm(const Gemm& g) {
  if (g.m == 0 || g.n == 0) return;
  // Column-major sees our row-major matrices transposed: C^T = B^T A^T.
  const auto as_int = [](std::int64_t x) { return static_cast<int>(x); };
  const int m = as_int(g.n), n = as_int(g.m), k = as_int(g.k);
  const int lda = as_int(g.ldb), ldb = as_int(g.lda), ldc = as_int(g.ldc);
  sgemm_(g.transpose_b ? "T" : "N", g.transpose_a ? "T" : "N", &m, &n, &k, &g.alpha, g.b, &lda, g.a, &ldb,
         &g.beta, g.c, &ldc);
}

void CpuOps::embed(const TokenBatch& batch, const float* word, const float* position, const float* type,
                   std::int64_t cols, float* out) {
  for (std::size_t row = 0; row < batch.ids.size(); ++row, out += cols) {
    std::memcpy(out, word + batch.ids[row] * cols, static_cast<std::size_t>(cols) * sizeof(float));
    if (position != nullptr) kernels_.add(position + batch.positions[row] * cols, cols, out);
    if (type != nullptr) kernels_.add(type + batch.type_ids[row] * cols, cols, out);
  }
}

void CpuOps::embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols, float* word,
                            float* position, float* type) {
  for (std::size_t row = 0; row < batch.ids.size(); ++row, d += cols) {
    if (word != nullptr) kernels_.add(d, cols, word + batch.ids[row] * cols);
    if (position != nullptr) kernels_.add(d, cols, position + batch.positions[row] * cols);
    if (type != nullptr) kernels_.add(d, cols, type + batch.type_ids[row] * cols);
  }
}

void CpuOps::dropout_bits(const DropoutKey& key, const TokenBatch& batch, std::int64_t cols,
                          std::uint32_t* bits) {
  kernels_.dropout_bits(key, batch.positions.data(), batch.examples.data(), batch.rows(), cols, bits);
}

void CpuOps::dropout_apply(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                           std::int64_t cols, float* out) {
  kernels_.dropout_apply(x, cols, bits, scale, rows, cols, out, cols);
}

void CpuOps::dropout_add(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                         std::int64_t cols, float* out) {
  kernels_.dropout_add(x, cols, bits, scale, rows, cols, out, cols);
}

void CpuOps::residual_norm_forward(const ResidualNorm& n) {
  kernels_.residual_norm_forward(n.x, n.bias, n.keep_bits, n.keep_scale, n.residual, n.gamma, n.beta,
                                 n.epsilon, n.rows, n.cols, n.normalized, n.inverse_std, n.y);
}

void CpuOps::norm_backward(const float* dy, const float* normalized, const float* inverse_std,
                           const float* gamma, std::int64_t rows, std::int64_t cols, float* dz, float* dgamma,
                           float* dbeta) {
  kernels_.norm_backward(dy, normalized, inverse_std, gamma, rows, cols, dz, dgamma, dbeta);
}

void CpuOps::scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                         std::int64_t cols, float* y) {
  kernels_.scale_shift(normalized, gamma, beta, rows, cols, y);
}

void CpuOps::bias_gelu_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols, float* y) {
  kernels_.bias_gelu_forward(x, bias, rows, cols, y);
}

void CpuOps::gelu_forward(const float* x, std::int64_t count, float* y) {
  kernels_.gelu_forward(x, count, y);
}

void CpuOps::gelu_backward(const float* dy, const float* x, std::int64_t count, float* dx) {
  kernels_.gelu_backward(dy, x, count, dx);
}

void CpuOps::bias_tanh_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row, x += cols) {
    for (std::int64_t c = 0; c < cols; ++c) x[c] = std::tanh(x[c] + bias[c]);
  }
}

void CpuOps::tanh_backward(const float* y, std::int64_t count, float* d) {
  for (std::int64_t i = 0; i < count; ++i) d[i] *= 1.0f - y[i] * y[i];
}

void CpuOps::column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) {
  kernels_.column_sums(x, cols, rows, cols, out);
}

void CpuOps::add(const float* x, std::int64_t count, float* out) { kernels_.add(x, count, out); }

void CpuOps::take_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols, float* out) {
  for (const std::int32_t place : places) {
    std::memcpy(out, x + place * cols, static_cast<std::size_t>(cols) * sizeof(float));
    out += cols;
  }
}

void CpuOps::add_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols, float* out) {
  for (const std::int32_t place : places) {
    kernels_.add(x, cols, out + place * cols);
    x += cols;
  }
}

namespace {

// Dropout bits of one sequence, [heads][queries][ceil(rows / 32)], lie in front of the heads' own scratch.
std::int64_t mask_words(const Attention& a, const Sequence& s) {
  if (a.dropout.threshold == 0) return 0;
  const std::int64_t queries = a.first_query_only ? 1 : s.rows;
  return (a.heads * queries * ((s.rows + 31) / 32) + 15) / 16 * 16;
}

// The heads of one sequence, one after the other, with their places in context and lse.
template <class Run>
void for_heads(const Kernels& kernels, const Attention& a, const TokenBatch& batch, float* scratch,
               const Run& run) {
  const std::int64_t hidden = a.heads * a.head_dim, stride = 3 * hidden;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const Sequence& s = batch.sequences[static_cast<std::size_t>(i)];
    const std::int64_t queries = a.first_query_only ? 1 : s.rows, words = (s.rows + 31) / 32;
    const std::int64_t out_row = a.first_query_only ? i : s.first_row;
    auto* bits = a.dropout.threshold == 0 ? nullptr : reinterpret_cast<std::uint32_t*>(scratch);
    if (bits != nullptr) kernels.attention_dropout_bits(a.dropout, s.example, a.heads, queries, s.rows, bits);
    for (std::int64_t head = 0; head < a.heads; ++head) {
      const std::int64_t column = head * a.head_dim;
      const float* first = a.qkv + s.first_row * stride + column;
      const AttentionHead one{.q = first,
                              .k = first + hidden,
                              .v = first + 2 * hidden,
                              .q_bias = a.bias == nullptr ? nullptr : a.bias + column,
                              .k_bias = a.bias == nullptr ? nullptr : a.bias + hidden + column,
                              .v_bias = a.bias == nullptr ? nullptr : a.bias + 2 * hidden + column,
                              .stride = stride,
                              .queries = queries,
                              .rows = s.rows,
                              .valid = s.valid,
                              .head_dim = a.head_dim,
                              .scale = 1.0f / std::sqrt(static_cast<float>(a.head_dim)),
                              .causal = a.causal,
                              .keep_bits = bits == nullptr ? nullptr : bits + head * queries * words,
                              .keep_scale = 65536.0f / static_cast<float>(65536 - a.dropout.threshold)};
      run(one, s.first_row * stride + column, out_row * hidden + column, out_row * a.heads + head * queries,
          scratch + mask_words(a, s));
    }
  }
}

}  // namespace

std::int64_t CpuOps::attention_scratch(const TokenBatch& batch, const Attention& a) {
  std::int64_t most = 0;
  for (const Sequence& s : batch.sequences) {
    most = std::max(most, kernels_.attention_scratch(s.rows, a.head_dim) + mask_words(a, s));
  }
  return most;
}

void CpuOps::attention_forward(const TokenBatch& batch, const Attention& a, float* context, float* lse,
                               float* scratch) {
  for_heads(kernels_, a, batch, scratch,
            [&](const AttentionHead& head, std::int64_t, std::int64_t at_context, std::int64_t at_lse,
                float* rest) {
              kernels_.attention_forward(head, context + at_context, a.heads * a.head_dim, lse + at_lse,
                                         rest);
            });
}

void CpuOps::attention_backward(const TokenBatch& batch, const Attention& a, const float* lse,
                                const float* dcontext, float* dqkv, float* scratch) {
  const std::int64_t hidden = a.heads * a.head_dim;
  for_heads(kernels_, a, batch, scratch,
            [&](const AttentionHead& head, std::int64_t at_qkv, std::int64_t at_context, std::int64_t at_lse,
                float* rest) {
              float* dq = dqkv + at_qkv;
              kernels_.attention_backward(head, lse + at_lse, dcontext + at_context, hidden, dq, dq + hidden,
                                          dq + 2 * hidden, rest);
            });
}

void CpuOps::add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) kernels_.add(bias, cols, x + row * cols);
}

double CpuOps::cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                             double loss_scale) {
  double total = 0;
  for (const std::int32_t target : targets) {
    double top = -INFINITY, sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) top = std::max(top, static_cast<double>(logits[c]));
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(logits[c] - top);
    const double log_sum = top + std::log(sum);
    total += log_sum - logits[target];
    for (std::int64_t c = 0; c < classes; ++c) {
      const double probability = std::exp(logits[c] - log_sum);
      logits[c] = static_cast<float>(loss_scale * (probability - (c == target ? 1 : 0)));
    }
    logits += classes;
  }
  return total;
}

}  // namespace batchwright::engine
