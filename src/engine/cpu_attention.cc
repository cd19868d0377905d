// CpuOps' attention: the heads of every sequence, one after the other, through the kernels.

#include <algorithm>

#include "engine/cpu_ops.h"

namespace batchwright::engine {
namespace {

std::int64_t queries_of(const Attention& a, const Sequence& s) { return a.one_query.empty() ? s.rows : 1; }

// Dropout bits of one sequence, [heads][queries][ceil(rows / 32)], lie in front of the heads' own scratch.
std::int64_t mask_words(const Attention& a, const Sequence& s) {
  if (a.dropout.threshold == 0) return 0;
  return (a.heads * queries_of(a, s) * ((s.rows + 31) / 32) + 15) / 16 * 16;
}

// The first key-value head of sequence i, with the queries that share it.
AttentionHead first_head(const Attention& a, const TokenBatch& batch, std::int64_t i,
                         const std::uint32_t* bits) {
  const Sequence& s = batch.sequences[static_cast<std::size_t>(i)];
  return {.q = a.q + s.first_row * a.q_stride,
          .k = a.k + s.first_row * a.k_stride,
          .v = a.v + s.first_row * a.v_stride,
          .q_bias = a.q_bias,
          .k_bias = a.k_bias,
          .v_bias = a.v_bias,
          .q_stride = a.q_stride,
          .k_stride = a.k_stride,
          .v_stride = a.v_stride,
          .context_stride = a.heads * a.head_dim,
          .group = a.heads / a.kv_heads,
          .head_dim = a.head_dim,
          .rows = s.rows,
          .valid = std::max<std::int64_t>(s.valid, 1),  // an empty text's one row sees itself
          .first_query = a.one_query.empty() ? 0 : a.one_query[static_cast<std::size_t>(i)] - s.first_row,
          .queries = queries_of(a, s),
          .scale = a.scale,
          .causal = a.causal,
          .window = a.window,
          .keep_bits = bits,
          .keep_scale = 65536.0f / static_cast<float>(65536 - a.dropout.threshold)};
}

// Where one key-value head of one sequence stands in the batch's arrays.
struct HeadPlace {
  std::int64_t query_column, key_column;  // in q and in k or v
  std::int64_t first_row;                 // of the sequence
  std::int64_t context_row, lse;
};

template <class Run>
void for_heads(const Kernels& kernels, const Attention& a, const TokenBatch& batch, float* scratch,
               const Run& run) {
  const auto moved = [](const float* pointer, std::int64_t by) {
    return pointer == nullptr ? nullptr : pointer + by;
  };
  for (std::int64_t i = 0; i < batch.size(); ++i) {
    const Sequence& s = batch.sequences[static_cast<std::size_t>(i)];
    const std::int64_t queries = queries_of(a, s), words = (s.rows + 31) / 32;
    auto* bits = a.dropout.threshold == 0 ? nullptr : reinterpret_cast<std::uint32_t*>(scratch);
    if (bits != nullptr) {
      const std::int64_t first =
          a.one_query.empty() ? 0 : a.one_query[static_cast<std::size_t>(i)] - s.first_row;
      kernels.attention_dropout_bits(a.dropout, s.example, a.heads, first, queries, s.rows, bits);
    }
    const AttentionHead first = first_head(a, batch, i, bits);
    HeadPlace place{.query_column = 0,
                    .key_column = 0,
                    .first_row = s.first_row,
                    .context_row = a.one_query.empty() ? s.first_row : i,
                    .lse = (a.one_query.empty() ? s.first_row : i) * a.heads};
    for (std::int64_t head = 0; head < a.kv_heads; ++head) {
      AttentionHead one = first;
      one.q += place.query_column;
      one.k += place.key_column;
      one.v += place.key_column;
      one.q_bias = moved(one.q_bias, place.query_column);
      one.k_bias = moved(one.k_bias, place.key_column);
      one.v_bias = moved(one.v_bias, place.key_column);
      if (bits != nullptr) one.keep_bits = bits + head * one.group * queries * words;
      run(one, place, scratch + mask_words(a, s));
      place.query_column += one.group * a.head_dim;
      place.key_column += a.head_dim;
      place.lse += one.group * queries;
    }
  }
}

}  // namespace

std::int64_t CpuOps::attention_scratch(const TokenBatch& batch, const Attention& a) {
  std::int64_t most = 0;
  for (const Sequence& s : batch.sequences) {
    most =
        std::max(most, kernels_.attention_scratch(s.rows, queries_of(a, s), a.head_dim) + mask_words(a, s));
  }
  return most;
}

void CpuOps::attention_forward(const TokenBatch& batch, const Attention& a, float* context, float* lse,
                               float* scratch) {
  const std::int64_t width = a.heads * a.head_dim;
  for_heads(kernels_, a, batch, scratch, [&](const AttentionHead& head, const HeadPlace& place, float* rest) {
    kernels_.attention_forward(head, context + place.context_row * width + place.query_column,
                               lse + place.lse, rest);
  });
}

void CpuOps::attention_backward(const TokenBatch& batch, const Attention& a, const float* lse,
                                const float* dcontext, const AttentionGradient& gradient, float* scratch) {
  const std::int64_t width = a.heads * a.head_dim;
  for_heads(kernels_, a, batch, scratch, [&](const AttentionHead& head, const HeadPlace& place, float* rest) {
    const std::int64_t at = place.first_row * gradient.stride;
    kernels_.attention_backward(head, lse + place.lse,
                                dcontext + place.context_row * width + place.query_column,
                                {.dq = gradient.dq + at + place.query_column,
                                 .dk = gradient.dk + at + place.key_column,
                                 .dv = gradient.dv + at + place.key_column,
                                 .stride = gradient.stride},
                                rest);
  });
}

}  // namespace batchwright::engine
