#include "engine/block.h"

namespace batchwright::engine {

const float* norm_output(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                         std::int64_t cols) {
  float* y = pass.arena.floats(rows * cols);
  pass.ops.scale_shift(saved.normalized, pass.parameters.value(norm.gamma), norm.beta_value(pass.parameters),
                       rows, cols, y);
  return y;
}

std::uint32_t* draw_mask(const Pass& pass, const DropoutKey& key, const TokenBatch& batch,
                         std::int64_t cols) {
  if (key.threshold == 0) return nullptr;
  std::uint32_t* mask = pass.arena.words(batch.rows() * ((cols + 31) / 32));
  pass.ops.dropout_bits(key, batch, cols, mask);
  return mask;
}

const float* through_dropout(const Pass& pass, const std::uint32_t* mask, std::uint32_t threshold,
                             std::int64_t rows, std::int64_t cols, const float* d) {
  if (mask == nullptr) return d;
  float* dropped = pass.arena.floats(rows * cols);
  pass.ops.dropout_apply(d, mask, keep_scale(threshold), rows, cols, dropped);
  return dropped;
}

void ask_wanted_rows(const Shard& shard, bool at_wanted_rows, Attention& attention) {
  const bool one = shard.wants == WantedRows::First || shard.wants == WantedRows::Last;
  if (at_wanted_rows && one) attention.one_query = shard.places;
}

AttentionSaved attention_forward(const Pass& pass, const Shard& shard, const Attention& a,
                                 bool at_wanted_rows, float* scratch) {
  const std::int64_t rows = shard.tokens.rows(), width = a.heads * a.head_dim;
  const std::int64_t out_rows = at_wanted_rows ? shard.wanted_rows().rows() : rows;
  const bool all_ask = a.one_query.empty();
  AttentionSaved saved;
  saved.lse = pass.arena.floats((all_ask ? rows : out_rows) * a.heads);
  saved.context = pass.arena.floats(out_rows * width);
  if (!all_ask || !at_wanted_rows) {
    pass.ops.attention_forward(shard.tokens, a, saved.context, saved.lse, scratch);
    return saved;
  }
  const ArenaScope inner(pass.arena);
  float* all = pass.arena.floats(rows * width);
  pass.ops.attention_forward(shard.tokens, a, all, saved.lse, scratch);
  pass.ops.take_rows(shard.places, all, width, saved.context);
  return saved;
}

void attention_backward(const Pass& pass, const Shard& shard, const Attention& a, bool at_wanted_rows,
                        const float* lse, const float* d_context, const AttentionGradient& gradient) {
  const ArenaScope inner(pass.arena);
  if (at_wanted_rows && a.one_query.empty()) {
    const std::int64_t width = a.heads * a.head_dim, count = shard.tokens.rows() * width;
    float* all = pass.arena.floats(count);
    pass.ops.zero(all, count);
    pass.ops.add_rows(shard.places, d_context, width, all);
    d_context = all;
  }
  float* scratch = pass.arena.floats(pass.ops.attention_scratch(shard.tokens, a));
  pass.ops.attention_backward(shard.tokens, a, lse, d_context, gradient, scratch);
}

}  // namespace batchwright::engine
