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

void CpuOps::embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols,
                            std::int64_t padding_id, float* word, float* position, float* type) {
  for (std::size_t row = 0; row < batch.ids.size(); ++row, d += cols) {
    if (word != nullptr && batch.ids[row] != padding_id) kernels_.add(d, cols, word + batch.ids[row] * cols);
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

void CpuOps::residual_norm_forward(const ResidualNorm& norm) { kernels_.residual_norm_forward(norm); }

void CpuOps::norm_backward(const NormGradient& norm) { kernels_.norm_backward(norm); }

void CpuOps::scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                         std::int64_t cols, float* y) {
  kernels_.scale_shift(normalized, gamma, beta, rows, cols, y);
}

void CpuOps::head_norm_forward(const HeadNorm& n) {
  for (std::int64_t row = 0; row < n.rows; ++row) {
    float* x = n.x + row * n.stride;
    kernels_.residual_norm_forward({.kind = NormKind::Rms,
                                    .x = x,
                                    .epsilon = n.epsilon,
                                    .rows = n.heads,
                                    .cols = n.head_dim,
                                    .normalized = x,
                                    .inverse_std = n.inverse_std + row * n.heads});
  }
}

void CpuOps::head_norm_backward(const HeadNorm& n, const float* gamma, float* d, std::int64_t d_stride,
                                float* dgamma) {
  for (std::int64_t row = 0; row < n.rows; ++row) {
    kernels_.norm_backward({.kind = NormKind::Rms,
                            .dy = d + row * d_stride,
                            .normalized = n.x + row * n.stride,
                            .inverse_std = n.inverse_std + row * n.heads,
                            .gamma = gamma,
                            .rows = n.heads,
                            .cols = n.head_dim,
                            .dz = d + row * d_stride,
                            .dgamma = dgamma});
  }
}

void CpuOps::rotary_table(const RotaryTable& table) {
  std::size_t at = 0;
  for (std::int64_t position = 0; position < table.positions; ++position) {
    for (const float frequency : table.frequencies) {
      const float angle = frequency * static_cast<float>(position);
      table.cosine[at] = std::cos(angle) * table.scale;
      table.sine[at++] = std::sin(angle) * table.scale;
    }
  }
}

void CpuOps::rotate(const TokenBatch& batch, const Rotation& rotation) {
  kernels_.rotate(rotation, batch.positions.data());
}

void CpuOps::bias_activation_forward(Activation kind, float* x, const float* bias, std::int64_t rows,
                                     std::int64_t cols, float* y) {
  kernels_.bias_activation_forward(kind, x, bias, rows, cols, y);
}

void CpuOps::activation_forward(Activation kind, const float* x, std::int64_t count, float* y) {
  kernels_.activation_forward(kind, x, count, y);
}

void CpuOps::activation_backward(Activation kind, const float* dy, const float* x, std::int64_t count,
                                 float* dx) {
  kernels_.activation_backward(kind, dy, x, count, dx);
}

void CpuOps::swiglu_forward(const float* gate_up, std::int64_t rows, std::int64_t cols, float* y) {
  kernels_.swiglu_forward(gate_up, rows, cols, y);
}

void CpuOps::swiglu_backward(const float* dy, const float* gate_up, std::int64_t rows, std::int64_t cols,
                             float* d) {
  kernels_.swiglu_backward(dy, gate_up, rows, cols, d);
}

void CpuOps::bias_squash_forward(Squash kind, float* x, const float* bias, std::int64_t rows,
                                 std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row, x += cols) {
    for (std::int64_t c = 0; c < cols; ++c) {
      x[c] = kind == Squash::Tanh ? std::tanh(x[c] + bias[c]) : std::max(x[c] + bias[c], 0.0f);
    }
  }
}

void CpuOps::squash_backward(Squash kind, const float* y, std::int64_t count, float* d) {
  for (std::int64_t i = 0; i < count; ++i) {
    d[i] *= kind == Squash::Tanh ? 1.0f - y[i] * y[i] : (y[i] > 0 ? 1.0f : 0.0f);
  }
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

void CpuOps::add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  for (std::int64_t row = 0; row < rows; ++row) kernels_.add(bias, cols, x + row * cols);
}

double CpuOps::cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                             double loss_scale) {
  double total = 0;
  for (const std::int32_t target : targets) {
    total += kernels_.cross_entropy(logits, classes, target, static_cast<float>(loss_scale));
    logits += classes;
  }
  return total;
}

}  // namespace batchwright::engine
