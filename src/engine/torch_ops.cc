#include "engine/torch_ops.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace batchwright::engine {
namespace {

at::Device device_of(DeviceKind kind) { return kind == DeviceKind::Cuda ? at::kCUDA : at::kCPU; }
at::TensorOptions float_on(DeviceKind kind) { return at::TensorOptions(at::kFloat).device(device_of(kind)); }

// A view of our memory; reads and writes go straight through.
at::Tensor view(DeviceKind kind, const float* data, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(data), shape, float_on(kind));
}
at::Tensor strided(DeviceKind kind, const float* data, std::int64_t rows, std::int64_t cols,
                   std::int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, cols}, {stride, 1}, float_on(kind));
}

template <class Values>
at::Tensor indices(DeviceKind kind, const Values& values) {
  at::Tensor result = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  auto* out = result.data_ptr<std::int64_t>();
  for (const auto value : values) *out++ = static_cast<std::int64_t>(value);
  return result.to(device_of(kind));
}

// Bits [rows][ceil(cols / 32)] as a float mask [rows, cols].
at::Tensor mask_of(const at::Tensor& words, std::int64_t rows, std::int64_t cols) {
  const at::Tensor shifts = at::arange(32, words.options().dtype(at::kInt));
  const at::Tensor bits = words.view({rows, -1, 1}).__rshift__(shifts).__and__(1);
  return bits.view({rows, -1}).narrow(1, 0, cols).to(at::kFloat);
}
at::Tensor mask_of(DeviceKind kind, const std::uint32_t* bits, std::int64_t rows, std::int64_t cols) {
  const at::Tensor words = at::from_blob(const_cast<std::uint32_t*>(bits), {rows * ((cols + 31) / 32)},
                                         at::TensorOptions(at::kInt).device(device_of(kind)));
  return mask_of(words, rows, cols);
}

}  // namespace

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

void TorchOps::embed_backward(const TokenBatch& batch, const float* d, std::int64_t cols, float* word,
                              float* position, float* type) {
  const at::Tensor gradient = view(device_, d, {batch.rows(), cols});
  const auto add_rows = [&](float* table, const at::Tensor& index) {
    if (table != nullptr) {
      view(device_, table, {index.max().item<std::int64_t>() + 1, cols}).index_add_(0, index, gradient);
    }
  };
  add_rows(word, indices(device_, batch.ids));
  add_rows(position, indices(device_, batch.positions));
  add_rows(type, indices(device_, batch.type_ids));
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
  const at::Tensor centred = z - z.mean(1, true);
  const at::Tensor inverse = (centred.square().mean(1, true) + n.epsilon).rsqrt();
  const at::Tensor normalized = centred * inverse;
  view(device_, n.normalized, {n.rows, n.cols}).copy_(normalized);
  view(device_, n.inverse_std, {n.rows, 1}).copy_(inverse);
  view(device_, n.y, {n.rows, n.cols})
      .copy_(normalized * view(device_, n.gamma, {n.cols}) + view(device_, n.beta, {n.cols}));
}

void TorchOps::norm_backward(const float* dy, const float* normalized, const float* inverse_std,
                             const float* gamma, std::int64_t rows, std::int64_t cols, float* dz,
                             float* dgamma, float* dbeta) {
  const at::Tensor d = view(device_, dy, {rows, cols}), n = view(device_, normalized, {rows, cols});
  if (dgamma != nullptr) {
    view(device_, dgamma, {cols}).add_((d * n).sum(0));
    view(device_, dbeta, {cols}).add_(d.sum(0));
  }
  const at::Tensor g = d * view(device_, gamma, {cols});
  const at::Tensor centred = g - g.mean(1, true) - n * (g * n).mean(1, true);
  view(device_, dz, {rows, cols}).copy_(centred * view(device_, inverse_std, {rows, 1}));
}

void TorchOps::scale_shift(const float* normalized, const float* gamma, const float* beta, std::int64_t rows,
                           std::int64_t cols, float* y) {
  view(device_, y, {rows, cols})
      .copy_(view(device_, normalized, {rows, cols}) * view(device_, gamma, {cols}) +
             view(device_, beta, {cols}));
}

void TorchOps::bias_gelu_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols,
                                 float* y) {
  add_bias(x, bias, rows, cols);
  gelu_forward(x, rows * cols, y);
}

void TorchOps::gelu_forward(const float* x, std::int64_t count, float* y) {
  view(device_, y, {count}).copy_(at::gelu(view(device_, x, {count})));
}

void TorchOps::gelu_backward(const float* dy, const float* x, std::int64_t count, float* dx) {
  view(device_, dx, {count}).copy_(at::gelu_backward(view(device_, dy, {count}), view(device_, x, {count})));
}

void TorchOps::bias_tanh_forward(float* x, const float* bias, std::int64_t rows, std::int64_t cols) {
  add_bias(x, bias, rows, cols);
  view(device_, x, {rows, cols}).tanh_();
}

void TorchOps::tanh_backward(const float* y, std::int64_t count, float* d) {
  view(device_, d, {count}).mul_(1 - view(device_, y, {count}).square());
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

namespace {

// One sequence's attention as tensors: q [heads, queries, d], k and v [heads, rows, d], biases added.
struct SequenceAttention {
  at::Tensor q, k, v, keep;  // keep [heads, queries, rows], already scaled; undefined without dropout
  at::Tensor visible;        // [queries, rows], true where a query may look
};

SequenceAttention sequence_attention(DeviceKind device, const Attention& a, const Sequence& s) {
  const std::int64_t hidden = a.heads * a.head_dim, queries = a.first_query_only ? 1 : s.rows;
  at::Tensor qkv = view(device, a.qkv + s.first_row * 3 * hidden, {s.rows, 3 * hidden});
  if (a.bias != nullptr) qkv = qkv + view(device, a.bias, {3 * hidden});
  const at::Tensor parts = qkv.view({s.rows, 3, a.heads, a.head_dim}).permute({1, 2, 0, 3});
  SequenceAttention result{
      .q = parts[0].narrow(1, 0, queries), .k = parts[1], .v = parts[2], .keep = {}, .visible = {}};
  const at::Tensor keys = at::arange(s.rows, at::TensorOptions(at::kLong).device(device_of(device)));
  result.visible = (keys < s.valid).unsqueeze(0).expand({queries, s.rows});
  if (a.causal)
    result.visible = result.visible.logical_and(keys.unsqueeze(0) <= keys.narrow(0, 0, queries).unsqueeze(1));
  if (a.dropout.threshold != 0) {
    at::Tensor words = at::empty({a.heads * queries * ((s.rows + 31) / 32)}, at::kInt);
    best_kernels().attention_dropout_bits(a.dropout, s.example, a.heads, queries, s.rows,
                                          reinterpret_cast<std::uint32_t*>(words.data_ptr<int>()));
    result.keep =
        mask_of(words, a.heads * queries, s.rows).view({a.heads, queries, s.rows}).to(device_of(device));
    result.keep = result.keep * (65536.0 / (65536 - a.dropout.threshold));
  }
  return result;
}

at::Tensor scores_of(const Attention& a, const SequenceAttention& s) {
  const at::Tensor scores = at::matmul(s.q, s.k.transpose(1, 2)) / std::sqrt(static_cast<double>(a.head_dim));
  return scores.masked_fill(s.visible.logical_not().unsqueeze(0), -INFINITY);
}

}  // namespace

void TorchOps::attention_forward(const TokenBatch& batch, const Attention& a, float* context, float* lse,
                                 float*) {
  const std::int64_t hidden = a.heads * a.head_dim;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const Sequence& sequence = batch.sequences[static_cast<std::size_t>(i)];
    const std::int64_t queries = a.first_query_only ? 1 : sequence.rows;
    const std::int64_t row = a.first_query_only ? i : sequence.first_row;
    const SequenceAttention s = sequence_attention(device_, a, sequence);
    const at::Tensor scores = scores_of(a, s), sums = at::logsumexp(scores, {2}, true);
    at::Tensor probabilities = (scores - sums).exp();
    if (s.keep.defined()) probabilities = probabilities * s.keep;
    view(device_, context + row * hidden, {queries, a.heads, a.head_dim})
        .copy_(at::matmul(probabilities, s.v).transpose(0, 1));
    view(device_, lse + row * a.heads, {a.heads, queries, 1}).copy_(sums);
  }
}

void TorchOps::attention_backward(const TokenBatch& batch, const Attention& a, const float* lse,
                                  const float* dcontext, float* dqkv, float*) {
  const std::int64_t hidden = a.heads * a.head_dim;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const Sequence& sequence = batch.sequences[static_cast<std::size_t>(i)];
    const std::int64_t queries = a.first_query_only ? 1 : sequence.rows;
    const std::int64_t row = a.first_query_only ? i : sequence.first_row;
    const SequenceAttention s = sequence_attention(device_, a, sequence);
    const at::Tensor sums = view(device_, lse + row * a.heads, {a.heads, queries, 1});
    const at::Tensor p = (scores_of(a, s) - sums).exp();
    const at::Tensor d_out =
        view(device_, dcontext + row * hidden, {queries, a.heads, a.head_dim}).transpose(0, 1);
    at::Tensor dp = at::matmul(d_out, s.v.transpose(1, 2));
    if (s.keep.defined()) dp = dp * s.keep;
    const at::Tensor ds = p * (dp - (p * dp).sum(2, true)) / std::sqrt(static_cast<double>(a.head_dim));
    at::Tensor gradient =
        view(device_, dqkv + sequence.first_row * 3 * hidden, {sequence.rows, 3, a.heads, a.head_dim})
            .zero_()
            .permute({1, 2, 0, 3});
    gradient[0].narrow(1, 0, queries).copy_(at::matmul(ds, s.k));
    gradient[1].copy_(at::matmul(ds.transpose(1, 2), s.q));
    gradient[2].copy_(at::matmul((s.keep.defined() ? p * s.keep : p).transpose(1, 2), d_out));
  }
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
