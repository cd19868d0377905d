// Decoder's gradients: forward in reverse, top to bottom.

#include "engine/decoder.h"

namespace batchwright::engine {

void Decoder::norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                            const float* dy, const float* residual, float* dz) const {
  const Parameters& p = pass.parameters;
  pass.ops.norm_backward({.kind = description_.norm,
                          .dy = dy,
                          .normalized = saved.normalized,
                          .inverse_std = saved.inverse_std,
                          .gamma = p.value(norm.gamma),
                          .residual = residual,
                          .rows = rows,
                          .cols = config_.hidden,
                          .dz = dz,
                          .dgamma = p.gradient(norm.gamma, pass.gradients),
                          .dbeta = norm.beta_gradient(p, pass.gradients)});
}

// d_normed, the gradient of the MLP's normed input, from that of the layer's output.
void Decoder::mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer,
                           const Scratch& scratch, const LayerSaved& saved, const float* dy,
                           float* d_normed) const {
  const ArenaScope scope(pass.arena);
  const std::int64_t rows = batch.rows(), cols = config_.intermediate;
  const Parameters& p = pass.parameters;
  const float* d_branch =
      through_dropout(pass, saved.mlp_mask, residual_threshold_, rows, config_.hidden, dy);
  float* wide = saved.wide;
  const bool again = wide == nullptr;  // selective checkpointing
  const float* input = again || layer.up.needs_input(p)
                           ? norm_output(pass, layer.mlp_norm, saved.mlp_norm, rows, config_.hidden)
                           : nullptr;
  if (again) {
    wide = scratch.wide;
    const ArenaScope inner(pass.arena);
    LinearSaved ignored;
    wide_forward(pass, batch, layer, input, wide, ignored);
  }
  float* activated = nullptr;
  if (layer.down.needs_input(p)) {
    activated = scratch.activated;
    activate(pass, wide, rows, activated);
  }
  float* d_activated = pass.arena.floats(rows * cols);
  layer.down.backward(pass, batch, activated, d_branch, saved.down_saved, d_activated);
  // The gradient takes the place of what it is the gradient of: nothing reads that again.
  if (gated())
    pass.ops.swiglu_backward(d_activated, wide, rows, cols, wide);
  else
    pass.ops.activation_backward(*description_.activation, d_activated, wide, rows * cols, wide);
  layer.up.backward(pass, batch, input, wide, saved.up_saved, d_normed);
}

// From the gradient of rotated, normed heads to that of the projection, in place.
void Decoder::heads_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer,
                             const Scratch& scratch, const LayerSaved& saved, float* d_qkv) const {
  if (!description_.rotary) return;
  const std::int64_t stride = layer.qkv.out;
  rotate(pass, batch, scratch, nullptr, d_qkv, stride, d_qkv, stride, true);
  if (!norms_heads()) return;
  const Parameters& p = pass.parameters;
  HeadNorm norm{.x = saved.qkv,
                .rows = batch.rows(),
                .heads = config_.heads,
                .head_dim = config_.head_dim,
                .stride = stride,
                .inverse_std = saved.query_inverse};
  const ParameterId query_gamma = layer.query_norm->gamma, key_gamma = layer.key_norm->gamma;
  pass.ops.head_norm_backward(norm, p.value(query_gamma), d_qkv, stride,
                              p.gradient(query_gamma, pass.gradients));
  norm.x += query_width();
  norm.heads = config_.kv_heads;
  norm.inverse_std = saved.key_inverse;
  pass.ops.head_norm_backward(norm, p.value(key_gamma), d_qkv + query_width(), stride,
                              p.gradient(key_gamma, pass.gradients));
}

// d_normed, the gradient of the attention's normed input, from dz, that of the residual stream after it.
void Decoder::attention_part_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                                      const Scratch& scratch, const LayerSaved& saved, const float* dz,
                                      float* d_normed) const {
  const ArenaScope scope(pass.arena);
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows(), stride = layer.qkv.out;
  float* d_qkv = pass.arena.floats(rows * stride);
  {
    const ArenaScope inner(pass.arena);
    const float* d_branch =
        through_dropout(pass, saved.attention_mask, residual_threshold_, out_rows, config_.hidden, dz);
    float* d_context = pass.arena.floats(out_rows * query_width());
    layer.attention_output.backward(pass, out_batch, saved.attention.context, d_branch,
                                    saved.attention_output_saved, d_context);
    if (norms_heads()) {
      rotate(pass, shard.tokens, scratch, &layer, saved.qkv, stride, scratch.rotated,
             query_width() + key_width(), false);
    }
    attention_backward(pass, shard, attention(pass, shard, layer, scratch, saved), takes_rows(shard, layer),
                       saved.attention.lse, d_context,
                       {.dq = d_qkv,
                        .dk = d_qkv + query_width(),
                        .dv = d_qkv + query_width() + key_width(),
                        .stride = stride});
  }
  heads_backward(pass, shard.tokens, layer, scratch, saved, d_qkv);
  const float* input =
      layer.qkv.needs_input(pass.parameters)
          ? norm_output(pass, layer.attention_norm, saved.attention_norm, rows, config_.hidden)
          : nullptr;
  layer.qkv.backward(pass, shard.tokens, input, d_qkv, saved.qkv_saved, d_normed);
}

void Decoder::layer_backward(const Pass& pass, const Shard& shard, const Layer& layer, const Scratch& scratch,
                             const LayerSaved& saved, const float* dy, float* dx) const {
  const ArenaScope scope(pass.arena);
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows(), h = config_.hidden;
  float* dz = pass.arena.floats(out_rows * h);  // of the residual stream between attention and MLP
  mlp_backward(pass, out_batch, layer, scratch, saved, dy, scratch.branch);
  norm_backward(pass, layer.mlp_norm, saved.mlp_norm, out_rows, scratch.branch, dy, dz);

  const bool norm_trains = pass.parameters.at(layer.attention_norm.gamma).trainable;
  float* d_normed = dx != nullptr || norm_trains ? scratch.branch : nullptr;
  attention_part_backward(pass, shard, layer, scratch, saved, dz, d_normed);
  if (d_normed == nullptr) return;
  const bool takes = takes_rows(shard, layer);
  norm_backward(pass, layer.attention_norm, saved.attention_norm, rows, d_normed, takes ? nullptr : dz,
                dx != nullptr ? dx : d_normed);
  if (takes && dx != nullptr) pass.ops.add_rows(shard.places, dz, h, dx);
}

void Decoder::backward(const Pass& pass, const Shard& shard, Activations& activations,
                       const float* d_hidden) const {
  auto& saved = static_cast<Saved&>(activations);
  const std::int64_t rows = shard.tokens.rows(), out_rows = shard.wanted_rows().rows(), h = config_.hidden;
  const ArenaScope scope(pass.arena);
  const Scratch& scratch = saved.scratch;
  const bool again = pass.checkpointing == Checkpointing::Full;
  // The stream is free after the forward pass, but where layers are computed again.
  float* d = again ? pass.arena.floats(rows * h) : scratch.stream;
  float* d_top = shard.wants == WantedRows::All ? d : pass.arena.floats(out_rows * h);
  norm_backward(pass, final_norm_, saved.final_norm, out_rows, d_hidden, nullptr, d_top);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const ArenaScope layer_scope(pass.arena);
    const Layer& layer = layers_[i];
    if (again) {
      saved.layers[i] = {};
      float* y = takes_rows(shard, layer) ? scratch.taken : scratch.stream;
      layer_forward(pass, shard, layer, saved.inputs[i], scratch, y, saved.layers[i]);
    }
    // Nothing below the first layer trains in LoRA: its input needs no gradient.
    float* dx = i > 0 || trains_embeddings_ ? d : nullptr;
    layer_backward(pass, shard, layer, scratch, saved.layers[i], is_last(layer) ? d_top : d, dx);
    pass.done(part_of(layer.qkv.layer));
  }
  if (!trains_embeddings_) return;
  const Parameters& p = pass.parameters;
  if (saved.embedding_mask != nullptr) {
    pass.ops.dropout_apply(d, saved.embedding_mask, keep_scale(embedding_threshold_), rows, h, d);
  }
  pass.ops.embed_backward(shard.tokens, d, h, config_.embedding_padding_id(),
                          p.gradient(word_, pass.gradients),
                          position_ ? p.gradient(*position_, pass.gradients) : nullptr, nullptr);
}

}  // namespace batchwright::engine
