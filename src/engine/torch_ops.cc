#include "engine/torch_ops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/torch_views.h"

namespace batchwright::engine {
std::string TorchOps::name() const { return device_ == DeviceKind::Cuda ? "cuda, ATen" : "cpu, ATen"; }

void TorchOps::zero(float* x, std::int64_t count) { view(device_, x, {count}).zero_(); }
void TorchOps::upload(const float* host, std::int64_t count, float* device) {
  view(device_, device, {count}).copy_(view(DeviceKind::Cpu, host, {count}));
}
void TorchOps::download(const float* device, std::int64_t count, float* host) {
  view(DeviceKind::Cpu, host, {count}).copy_(view(device_, device, {count}));
}

void TorchOps::gemm(const Gemm& g) {
  at::Tensor a =
      g.transpose_a ? strided(device_, g.a, g.k, g.m, g.lda).t() : strided(device_, g.a, g.m, g.k, g.lda);
  at::Tensor b =
      g.transpose_b ? strided(device_, g.b, g.n, g.k, g.ldb).t() : strided(device_, g.b, g.k, g.n, g.ldb);
  at::Tensor c = strided(device_, g.c, g.m, g.n, g.ldc);
  if (g.beta == 0)
    c.copy_(at::mm(a, b).mul_(g.alpha));
  else
    c.mul_(g.beta).add_(at::mm(a, b), g.alpha);
}

void TorchOps::embed(const TokenBatch& batch, const float* word, const float* position, const float* type,
                     std::int64_t cols, float* out) {
  at::Tensor sum = view(device_, out, {batch.rows(), cols}).zero_();
  const auto add_rows = [&](const float* table, const at::Tensor& index) {
    if (table != nullptr)
      sum += view(device_, table, {index.max().item<std::int64_t>() + 1, cols}).index_select(0, index);
  };
  add_rows(word, indices(device_, batch.ids));
  add_rows(position, indices(device_, batch.positions));
  add_rows(type, indices(device_, batch.type_ids));
}

void TorchOps::embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols,
                              std::int64_t padding_id, float* word, float* position, float* type) {
  const at::Tensor gradient = view(device_, d, {batch.rows(), cols});
  const auto add_rows = [&](float* table, const at::Tensor& index, const at::Tensor& values) {
    if (table != nullptr) {
      view(device_, table, {index.max().item<std::int64_t>() + 1, cols}).index_add_(0, index, values);
    }
  };
  const at::Tensor ids = indices(device_, batch.ids);
  add_rows(word, ids, gradient * (ids != padding_id).unsqueeze(1));
  add_rows(position, indices(device_, batch.positions), gradient);
  add_rows(type, indices(device_, batch.type_ids), gradient);
}

void TorchOps::dropout_bits(const DropoutKey& key, const TokenBatch& batch, std::int64_t cols,
                            std::uint32_t* bits) {
  const std::int64_t words = batch.rows() * ((cols + 31) / 32);
  at::Tensor host = at::empty({words}, at::kInt);
  best_kernels().dropout_bits(key, batch.positions.data(), batch.examples.data(), batch.rows(), cols,
                              reinterpret_cast<std::uint32_t*>(host.data_ptr<int>()));
  at::from_blob(bits, {words}, at::TensorOptions(at::kInt).device(device_of(device_))).copy_(host);
}

void TorchOps::dropout_apply(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                             std::int64_t cols, float* out) {
  view(device_, out, {rows, cols})
      .copy_(view(device_, x, {rows, cols}) * mask_of(device_, bits, rows, cols) * scale);
}

void TorchOps::dropout_add(const float* x, const std::uint32_t* bits, float scale, std::int64_t rows,
                           std::int64_t cols, float* out) {
  view(device_, out, {rows, cols})
      .add_(view(device_, x, {rows, cols}) * mask_of(device_, bits, rows, cols), scale);
}

void TorchOps::residual_norm_forward(const ResidualNorm& n) {
  at::Tensor z = view(device_, n.x, {n.rows, n.cols}).clone();
  if (n.bias != nullptr) z += view(device_, n.bias, {n.cols});
  if (n.keep_bits != nullptr) z = z * mask_of(device_, n.keep_bits, n.rows, n.cols) * n.keep_scale;
  if (n.residual != nullptr) z += view(device_, n.residual, {n.rows, n.cols});
  if (n.sum != nullptr) view(device_, n.sum, {n.rows, n.cols}).copy_(z);
  const at::Tensor centred = n.kind == NormKind::Layer ? z - z.mean(1, true) : z;
  const at::Tensor inverse = (centred.square().mean(1, true) + n.epsilon).rsqrt();
  at::Tensor normalized = centred * inverse;
  view(device_, n.normalized, {n.rows, n.cols}).copy_(normalized);
  view(device_, n.inverse_std, {n.rows, 1}).copy_(inverse);
  if (n.y == nullptr) return;
  normalized = normalized * view(device_, n.gamma, {n.cols});
  if (n.beta != nullptr) normalized += view(device_, n.beta, {n.cols});
  view(device_, n.y, {n.rows, n.cols}).copy_(normalized);
}

void TorchOps::norm_backward(const NormGradient& n) {
  const at::Tensor d = view(device_, n.dy, {n.rows, n.cols}),
                   normalized = view(device_, n.normalized, {n.rows, n.cols});
  if (n.dgamma != nullptr) view(device_, n.dgamma, {n.cols}).add_((d * normalized).sum(0));
  if (n.dbeta != nullptr) view(device_, n.dbeta, {n.cols}).add_(d.sum(0));
  const at::Tensor g = d * view(device_, n.gamma, {n.cols});
  at::Tensor dz = g - normalized * (g * normalized).mean(1, true);
  if (n.kind == NormKind::Layer) dz -= g.mean(1, true);
  dz *= view(device_, n.inverse_std, {n.rows, 1});
  if (n.residual != nullptr) dz += view(device_, n.residual, {n.rows, n.cols});
  view(device_, n.dz, {n.rows, n.cols}).copy_(dz);
}

void TorchOps::scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                           std::int64_t cols, float* y) {
  at::Tensor scaled = view(device_, normalized, {rows, cols}) * view(device_, gamma, {cols});
  if (beta != nullptr) scaled += view(device_, beta, {cols});
  view(device_, y, {rows, cols}).copy_(scaled);
}

void TorchOps::head_norm_forward(const HeadNorm& n) {
  at::Tensor x = heads_of(device_, n.x, n.rows, n.heads, n.head_dim, n.stride);
  const at::Tensor inverse = (x.square().mean(2, true) + n.epsilon).rsqrt();
  view(device_, n.inverse_std, {n.rows, n.heads, 1}).copy_(inverse);
  x.mul_(inverse);
}

void TorchOps::head_norm_backward(const HeadNorm& n, const float* gamma, float* d, std::int64_t d_stride,
                                  float* dgamma) {
  const at::Tensor x = heads_of(device_, n.x, n.rows, n.heads, n.head_dim, n.stride);
  at::Tensor gradient = heads_of(device_, d, n.rows, n.heads, n.head_dim, d_stride);
  if (dgamma != nullptr) view(device_, dgamma, {n.head_dim}).add_((gradient * x).sum({0, 1}));
  const at::Tensor g = gradient * view(device_, gamma, {n.head_dim});
  gradient.copy_((g - x * (g * x).mean(2, true)) * view(device_, n.inverse_std, {n.rows, n.heads, 1}));
}

void TorchOps::rotary_table(const RotaryTable& t) {
  const auto count = static_cast<std::int64_t>(t.frequencies.size());
  const at::Tensor frequencies =
      view(DeviceKind::Cpu, t.frequencies.data(), {1, count}).to(device_of(device_));
  const at::Tensor angles = at::arange(t.positions, float_on(device_)).unsqueeze(1) * frequencies;
  view(device_, t.cosine, {t.positions, count}).copy_(angles.cos() * t.scale);
  view(device_, t.sine, {t.positions, count}).copy_(angles.sin() * t.scale);
}

void TorchOps::rotate(const TokenBatch& batch, const Rotation& r) {
  const std::int64_t half = r.head_dim / 2;
  const at::Tensor positions = indices(device_, batch.positions);
  const std::int64_t table_rows = positions.max().item<std::int64_t>() + 1;
  const auto table = [&](const float* data) {
    return view(device_, data, {table_rows, half}).index_select(0, positions).unsqueeze(1);
  };
  const at::Tensor cosine = table(r.cosine), sine = r.backward ? -table(r.sine) : table(r.sine);
  at::Tensor x = heads_of(device_, r.x, r.rows, r.heads, r.head_dim, r.x_stride);
  if (r.gamma != nullptr) x = x * view(device_, r.gamma, {r.head_dim});
  const at::Tensor low = x.narrow(2, 0, half).clone(), high = x.narrow(2, half, half).clone();
  at::Tensor y = heads_of(device_, r.y, r.rows, r.heads, r.head_dim, r.y_stride);
  y.narrow(2, 0, half).copy_(low * cosine - high * sine);
  y.narrow(2, half, half).copy_(high * cosine + low * sine);
}

namespace {

const char* approximation(Activation kind) { return kind == Activation::Gelu ? "none" : "tanh"; }

}  // namespace

void TorchOps::bias_activation_forward(Activation kind, float* x, const float* bias, std::int64_t rows,
                                       std::int64_t cols, float* y) {
  add_bias(x, bias, rows, cols);
  activation_forward(kind, x, rows * cols, y);
}

void TorchOps::activation_forward(Activation kind, const float* x, std::int64_t count, float* y) {
  view(device_, y, {count}).copy_(at::gelu(view(device_, x, {count}), approximation(kind)));
}

void TorchOps::activation_backward(Activation kind, const float* dy, const float* x, std::int64_t count,
                                   float* dx) {
  view(device_, dx, {count})
      .copy_(at::gelu_backward(view(device_, dy, {count}), view(device_, x, {count}), approximation(kind)));
}

void TorchOps::swiglu_forward(const float* gate_up, std::int64_t rows, std::int64_t cols, float* y) {
  const at::Tensor both = view(device_, gate_up, {rows, 2, cols});
  view(device_, y, {rows, cols}).copy_(at::silu(both.select(1, 0)) * both.select(1, 1));
}

void TorchOps::swiglu_backward(const float* dy, const float* gate_up, std::int64_t rows, std::int64_t cols,
                               float* d) {
  const at::Tensor both = view(device_, gate_up, {rows, 2, cols}), gate = both.select(1, 0);
  const at::Tensor g = view(device_, dy, {rows, cols}), s = gate.sigmoid();
  const at::Tensor d_gate = g * both.select(1, 1) * (s + gate * s * (1 - s)), d_up = g * gate * s;
  view(device_, d, {rows, 2, cols}).copy_(at::stack({d_gate, d_up}, 1));
}

void TorchOps::bias_squash_forward(Squash kind, float* x, const float* bias, std::int64_t rows,
                                   std::int64_t cols) {
  add_bias(x, bias, rows, cols);
  at::Tensor y = view(device_, x, {rows, cols});
  if (kind == Squash::Tanh)
    y.tanh_();
  else
    y.relu_();
}

void TorchOps::squash_backward(Squash kind, const float* y, std::int64_t count, float* d) {
  const at::Tensor out = view(device_, y, {count});
  view(device_, d, {count}).mul_(kind == Squash::Tanh ? 1 - out.square() : (out > 0).to(at::kFloat));
}

void TorchOps::column_sums(const float* x, std::int64_t rows, std::int64_t cols, float* out) {
  view(device_, out, {cols}).add_(view(device_, x, {rows, cols}).sum(0));
}

void TorchOps::add(const float* x, std::int64_t count, float* out) {
  view(device_, out, {count}).add_(view(device_, x, {count}));
}

void TorchOps::take_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols,
                         float* out) {
  if (places.empty()) return;
  const std::int64_t rows = 1 + *std::max_element(places.begin(), places.end());
  view(device_, out, {static_cast<std::int64_t>(places.size()), cols})
      .copy_(view(device_, x, {rows, cols}).index_select(0, indices(device_, places)));
}

void TorchOps::add_rows(std::span<const std::int32_t> places, const float* x, std::int64_t cols, float* out) {
  if (places.empty()) return;
  const std::int64_t rows = 1 + *std::max_element(places.begin(), places.end());
  view(device_, out, {rows, cols})
      .index_add_(0, indices(device_, places),
                  view(device_, x, {static_cast<std::int64_t>(places.size()), cols}));
}

void TorchOps::add_bias(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  view(device_, x, {rows, cols}).add_(view(device_, bias, {cols}));
}

double TorchOps::cross_entropy(std::span<const std::int32_t> targets, float* logits, std::int64_t classes,
                               double loss_scale) {
  at::Tensor scores = view(device_, logits, {static_cast<std::int64_t>(targets.size()), classes});
  const at::Tensor wanted = indices(device_, targets).unsqueeze(1);
  const at::Tensor log_probabilities = at::log_softmax(scores.to(at::kDouble), 1);
  const double loss = -log_probabilities.gather(1, wanted).sum().item<double>();
  const at::Tensor one_hot = at::zeros_like(log_probabilities).scatter_(1, wanted, 1.0);
  scores.copy_((log_probabilities.exp() - one_hot) * loss_scale);
  return loss;
}

double TorchOps::sum_of_squares(const float* x, std::int64_t count) {
  return view(device_, x, {count}).to(at::kDouble).square().sum().item<double>();
}

void TorchOps::adamw(const AdamWUpdate& u) {
  at::Tensor value = view(device_, u.value, {u.count}), m = view(device_, u.moment1, {u.count}),
             v = view(device_, u.moment2, {u.count});
  const at::Tensor g = view(device_, u.gradient, {u.count}) * u.gradient_scale;
  m.mul_(u.beta1).add_(g, 1 - u.beta1);
  v.mul_(u.beta2).addcmul_(g, g, 1 - u.beta2);
  value.mul_(1 - u.learning_rate * u.weight_decay);
  value.addcdiv_(m, (v.sqrt() / std::sqrt(u.bias_correction2)).add_(u.epsilon),
                 -u.learning_rate / u.bias_correction1);
}

}  // namespace batchwright::engine
