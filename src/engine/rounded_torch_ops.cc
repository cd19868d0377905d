#include <ATen/ATen.h>

#include "engine/precision.h"
#include "engine/torch_ops.h"

namespace batchwright::engine {
namespace {

at::ScalarType scalar_of(Number number) {
  return number == Number::Float16 ? at::kHalf : number == Number::BFloat16 ? at::kBFloat16 : at::kFloat;
}

class RoundedTorchOps final : public TorchOps {
 public:
  RoundedTorchOps(DeviceKind device, Precision precision) : TorchOps(device), precision_(precision) {}

  std::string name() const override {
    return TorchOps::name() + (precision_.products == Number::Float16 ? ", fp16" : ", bf16");
  }

  void gemm(const Gemm& g) override {
    if (g.m == 0 || g.n == 0) return;
    const at::Tensor a =
        factor(g.a, g.transpose_a ? g.k : g.m, g.transpose_a ? g.m : g.k, g.lda, g.transpose_a);
    const at::Tensor b =
        factor(g.b, g.transpose_b ? g.n : g.k, g.transpose_b ? g.k : g.n, g.ldb, g.transpose_b);
    at::Tensor product = at::mm(a, b).to(at::kFloat);
    if (g.alpha != 1) product.mul_(g.alpha);
    at::Tensor c = matrix(g.c, g.m, g.n, g.ldc);
    if (g.beta == 0) {
      c.copy_(product);
    } else {
      c.mul_(g.beta).add_(product);
    }
  }

  void column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) override {
    const at::Tensor sums =
        matrix(x, rows, cols, cols).to(scalar_of(precision_.products)).sum(0).to(at::kFloat);
    matrix(out, 1, cols, cols)[0].add_(sums);
  }

  void round_stored(float* x, std::int64_t count) override {
    if (precision_.stored == Number::Float32) return;
    at::Tensor values = matrix(x, 1, count, count);
    values.copy_(values.to(scalar_of(precision_.stored)));
  }

 private:
  at::Tensor matrix(const float* data, std::int64_t rows, std::int64_t cols, std::int64_t stride) const {
    const at::Device where = device() == DeviceKind::Cuda ? at::kCUDA : at::kCPU;
    return at::from_blob(const_cast<float*>(data), {rows, cols}, {stride, 1},
                         at::TensorOptions(at::kFloat).device(where));
  }
  at::Tensor factor(const float* data, std::int64_t rows, std::int64_t cols, std::int64_t stride,
                    bool transpose) {
    const at::Tensor rounded = matrix(data, rows, cols, stride).to(scalar_of(precision_.products));
    return transpose ? rounded.t() : rounded;
  }

  Precision precision_;
};

}  // namespace

std::unique_ptr<Ops> make_rounded_torch_ops(DeviceKind device, Precision precision) {
  return std::make_unique<RoundedTorchOps>(device, precision);
}

}  // namespace batchwright::engine
