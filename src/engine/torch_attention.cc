// TorchOps' attention, with every score in memory: the plain formulas.

#include <cmath>

#include "engine/torch_ops.h"
#include "engine/torch_views.h"

namespace batchwright::engine {
namespace {

// One sequence's attention as tensors: q [heads, queries, d], k and v [heads, rows, d], biases added, a
// shared key or value repeated for every query head.
struct SequenceAttention {
  std::int64_t queries = 0, first_row = 0, context_row = 0;
  at::Tensor q, k, v, keep;  // keep [heads, queries, rows], already scaled; undefined without dropout
  at::Tensor visible;        // [queries, rows], true where a query may look
};

at::Tensor with_bias(DeviceKind device, const at::Tensor& heads, const float* bias) {
  return bias == nullptr ? heads : heads + view(device, bias, {1, heads.size(1), heads.size(2)});
}

SequenceAttention sequence_attention(DeviceKind device, const Attention& a, const TokenBatch& batch,
                                     std::int64_t i) {
  const Sequence& s = batch.sequences[static_cast<std::size_t>(i)];
  SequenceAttention result;
  result.queries = a.one_query.empty() ? s.rows : 1;
  result.first_row = a.one_query.empty() ? 0 : a.one_query[static_cast<std::size_t>(i)] - s.first_row;
  result.context_row = a.one_query.empty() ? s.first_row : i;
  const auto part = [&](const float* data, const float* bias, std::int64_t heads, std::int64_t stride) {
    const at::Tensor all = heads_of(device, data + s.first_row * stride, s.rows, heads, a.head_dim, stride);
    return with_bias(device, all, bias).transpose(0, 1);
  };
  const std::int64_t group = a.heads / a.kv_heads;
  result.q = part(a.q, a.q_bias, a.heads, a.q_stride).narrow(1, result.first_row, result.queries);
  result.k = part(a.k, a.k_bias, a.kv_heads, a.k_stride).repeat_interleave(group, 0);
  result.v = part(a.v, a.v_bias, a.kv_heads, a.v_stride).repeat_interleave(group, 0);

  const at::Tensor keys = at::arange(s.rows, at::TensorOptions(at::kLong).device(device_of(device)));
  const at::Tensor rows = keys.narrow(0, result.first_row, result.queries).unsqueeze(1);
  const std::int64_t valid = std::max<std::int64_t>(s.valid, 1);
  result.visible = (keys < valid).unsqueeze(0).expand({result.queries, s.rows});
  if (a.causal) result.visible = result.visible.logical_and(keys <= rows);
  // A padding row past a window sees the last key.
  if (a.window > 0) {
    result.visible = result.visible.logical_and(keys > (rows - a.window).clamp_max(valid - 2));
  }
  if (a.dropout.threshold != 0) {
    at::Tensor words = at::empty({a.heads * result.queries * ((s.rows + 31) / 32)}, at::kInt);
    best_kernels().attention_dropout_bits(a.dropout, s.example, a.heads, result.first_row, result.queries,
                                          s.rows, reinterpret_cast<std::uint32_t*>(words.data_ptr<int>()));
    const at::Tensor mask = mask_of(words, a.heads * result.queries, s.rows);
    result.keep = mask.view({a.heads, result.queries, s.rows}).to(device_of(device)) *
                  (65536.0 / (65536 - a.dropout.threshold));
  }
  return result;
}

at::Tensor scores_of(const Attention& a, const SequenceAttention& s) {
  const at::Tensor scores = at::matmul(s.q, s.k.transpose(1, 2)) * a.scale;
  return scores.masked_fill(s.visible.logical_not().unsqueeze(0), -INFINITY);
}

}  // namespace

void TorchOps::attention_forward(const TokenBatch& batch, const Attention& a, float* context, float* lse,
                                 float*) {
  const std::int64_t width = a.heads * a.head_dim;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const SequenceAttention s = sequence_attention(device_, a, batch, i);
    const at::Tensor scores = scores_of(a, s), sums = at::logsumexp(scores, {2}, true);
    at::Tensor probabilities = (scores - sums).exp();
    if (s.keep.defined()) probabilities = probabilities * s.keep;
    view(device_, context + s.context_row * width, {s.queries, a.heads, a.head_dim})
        .copy_(at::matmul(probabilities, s.v).transpose(0, 1));
    view(device_, lse + s.context_row * a.heads, {a.heads, s.queries, 1}).copy_(sums);
  }
}

void TorchOps::attention_backward(const TokenBatch& batch, const Attention& a, const float* lse,
                                  const float* dcontext, const AttentionGradient& gradient, float*) {
  const std::int64_t width = a.heads * a.head_dim, group = a.heads / a.kv_heads;
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const Sequence& sequence = batch.sequences[static_cast<std::size_t>(i)];
    const SequenceAttention s = sequence_attention(device_, a, batch, i);
    const at::Tensor sums = view(device_, lse + s.context_row * a.heads, {a.heads, s.queries, 1});
    const at::Tensor p = (scores_of(a, s) - sums).exp();
    const at::Tensor d_out =
        view(device_, dcontext + s.context_row * width, {s.queries, a.heads, a.head_dim}).transpose(0, 1);
    at::Tensor dp = at::matmul(d_out, s.v.transpose(1, 2));
    if (s.keep.defined()) dp = dp * s.keep;
    const at::Tensor ds = p * (dp - (p * dp).sum(2, true)) * a.scale;
    const auto into = [&](float* data, std::int64_t heads) {
      return heads_of(device_, data + sequence.first_row * gradient.stride, sequence.rows, heads, a.head_dim,
                      gradient.stride)
          .transpose(0, 1);
    };
    const auto shared = [&](const at::Tensor& d) {  // summed over the queries that share a key-value head
      return d.view({a.kv_heads, group, sequence.rows, a.head_dim}).sum(1);
    };
    into(gradient.dq, a.heads).zero_().narrow(1, s.first_row, s.queries).copy_(at::matmul(ds, s.k));
    into(gradient.dk, a.kv_heads).copy_(shared(at::matmul(ds.transpose(1, 2), s.q)));
    const at::Tensor kept = s.keep.defined() ? p * s.keep : p;
    into(gradient.dv, a.kv_heads).copy_(shared(at::matmul(kept.transpose(1, 2), d_out)));
  }
}

}  // namespace batchwright::engine
