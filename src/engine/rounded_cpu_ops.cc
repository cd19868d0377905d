#include "engine/cpu_ops.h"
#include "engine/precision.h"

namespace batchwright::engine {
namespace {

class RoundedCpuOps final : public CpuOps {
 public:
  RoundedCpuOps(const Kernels& kernels, Precision precision) : CpuOps(kernels), precision_(precision) {}

  std::string name() const override {
    return CpuOps::name() + (precision_.products == Number::Float16 ? ", fp16 rounding" : ", bf16 rounding");
  }

  void gemm(const Gemm& g) override {
    thread_local Buffer a, b, c;
    Gemm rounded = g;
    const std::int64_t a_rows = g.transpose_a ? g.k : g.m, a_cols = g.transpose_a ? g.m : g.k;
    const std::int64_t b_rows = g.transpose_b ? g.n : g.k, b_cols = g.transpose_b ? g.k : g.n;
    rounded.a = packed(g.a, a_rows, a_cols, g.lda, a);
    rounded.b = packed(g.b, b_rows, b_cols, g.ldb, b);
    rounded.lda = a_cols;
    rounded.ldb = b_cols;
    if (c.bytes() < g.m * g.n * 4) c = Buffer(g.m * g.n * 4);
    rounded.c = c.floats();
    rounded.ldc = g.n;
    rounded.beta = 0;
    CpuOps::gemm(rounded);
    round_to(precision_.products, c.floats(), g.m * g.n, c.floats());
    for (std::int64_t row = 0; row < g.m; ++row) {
      const float* product = c.floats() + row * g.n;
      float* out = g.c + row * g.ldc;
      for (std::int64_t i = 0; i < g.n; ++i) out[i] = g.beta == 0 ? product[i] : g.beta * out[i] + product[i];
    }
  }

  // A bias's gradient: the sum over rows of a 16-bit gradient is a 16-bit number, too.
  void column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) override {
    thread_local Buffer rounded, sums;
    const float* terms = packed(x, rows, cols, cols, rounded);
    if (sums.bytes() < cols * 4) sums = Buffer(cols * 4);
    zero(sums.floats(), cols);
    CpuOps::column_sums(terms, rows, cols, sums.floats());
    round_to(precision_.products, sums.floats(), cols, sums.floats());
    add(sums.floats(), cols, out);
  }

  void round_stored(float* x, std::int64_t count) override { round_to(precision_.stored, x, count, x); }

 private:
  const float* packed(const float* x, std::int64_t rows, std::int64_t cols, std::int64_t stride,
                      Buffer& buffer) {
    if (buffer.bytes() < rows * cols * 4) buffer = Buffer(rows * cols * 4);
    for (std::int64_t row = 0; row < rows; ++row) {
      round_to(precision_.products, x + row * stride, cols, buffer.floats() + row * cols);
    }
    return buffer.floats();
  }

  Precision precision_;
};

}  // namespace

std::unique_ptr<Ops> make_rounded_cpu_ops(const Kernels& kernels, Precision precision) {
  return std::make_unique<RoundedCpuOps>(kernels, precision);
}

}  // namespace batchwright::engine
