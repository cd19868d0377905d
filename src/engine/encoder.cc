#include "engine/encoder.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "engine/adapters.h"

namespace batchwright::engine {

using model::Role;

Encoder::Encoder(const model::ModelConfig& config, const EncoderDescription& description,
                 const run::TrainingOptions& options, Parameters& parameters)
    : config_(config), description_(description) {
  if (config.heads * config.head_dim != config.hidden) {
    throw Error(ErrorKind::InvalidInput, "config.json",
                fmt::format("{} heads of {} do not make the hidden size {}", config.heads, config.head_dim,
                            config.hidden));
  }
  const auto rate = [&](double p) { return dropout_threshold(options.model_dropout.value_or(p)); };
  hidden_threshold_ = rate(description.hidden_dropout);
  attention_threshold_ = rate(description.attention_dropout);
  const Declaration declare(model::list_modules(config, model::Head::SequenceClassification), options,
                            parameters);
  word_ = declare.embedding(Role::WordEmbedding);
  parameters.mark_row_per_token(word_);
  position_ = declare.embedding(Role::PositionEmbedding);
  if (declare.find(Role::TypeEmbedding) != nullptr) type_ = declare.embedding(Role::TypeEmbedding);
  embedding_norm_ = declare.norm(Role::EmbeddingNorm);
  for (ParameterId id = 0; id < parameters.all().size(); ++id) {
    trains_embeddings_ = trains_embeddings_ || parameters.at(id).trainable;
  }
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    parameters.enter_part(part_of(i));
    Layer layer;
    layer.qkv = declare.linear({Role::Query, Role::Key, Role::Value}, i);
    layer.attention_output = declare.linear({Role::AttentionOutput}, i);
    layer.attention_norm = declare.norm(Role::AttentionNorm, i);
    layer.intermediate = declare.linear({Role::Up}, i);
    layer.mlp_output = declare.linear({Role::Down}, i);
    layer.mlp_norm = declare.norm(Role::MlpNorm, i);
    layers_.push_back(std::move(layer));
  }
}

void Encoder::add_adapters(Parameters& p, const std::vector<std::string>& wrapped,
                           const run::LoraOptions& options) {
  using engine::add_adapters;
  for (Layer& layer : layers_) {
    p.enter_part(part_of(layer.qkv.layer));
    add_adapters(p, layer.qkv, {Site::LoraQuery, Site::LoraKey, Site::LoraValue}, wrapped, options);
    add_adapters(p, layer.attention_output, {Site::LoraAttentionOutput}, wrapped, options);
    add_adapters(p, layer.intermediate, {Site::LoraIntermediate}, wrapped, options);
    add_adapters(p, layer.mlp_output, {Site::LoraMlpOutput}, wrapped, options);
  }
}

// ---- forward

void Encoder::embed(const Pass& pass, const TokenBatch& batch, Saved& saved) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  saved.embedded = pass.arena.floats(rows * h);
  NormSaved& norm = saved.embedding_norm;
  // Frozen embeddings need nothing for backward: the norm then works inside the layer's input.
  norm.normalized = trains_embeddings_ ? pass.arena.floats(rows * h) : saved.embedded;
  norm.inverse_std = pass.arena.floats(rows);
  pass.ops.embed(batch, p.value(word_), p.value(position_) + position_start(),
                 type_ ? p.value(*type_) : nullptr, h, norm.normalized);
  pass.ops.residual_norm_forward({.x = norm.normalized,
                                  .gamma = p.value(embedding_norm_.gamma),
                                  .beta = embedding_norm_.beta_value(p),
                                  .epsilon = static_cast<float>(description_.norm_epsilon),
                                  .rows = rows,
                                  .cols = h,
                                  .normalized = norm.normalized,
                                  .inverse_std = norm.inverse_std,
                                  .y = saved.embedded});
  const DropoutKey key = dropout_key(pass, 0, Site::Embedding, hidden_threshold_);
  norm.mask = draw_mask(pass, key, batch, h);
  if (norm.mask == nullptr) return;
  pass.ops.dropout_apply(saved.embedded, norm.mask, keep_scale(key.threshold), rows, h, saved.embedded);
}

Attention Encoder::attention_shape(const Pass& pass, std::int64_t layer) const {
  Attention a{.heads = config_.heads, .kv_heads = config_.heads, .head_dim = config_.head_dim};
  a.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  a.dropout = dropout_key(pass, layer, Site::AttentionProbabilities, attention_threshold_);
  return a;
}

Attention Encoder::attention(const Pass& pass, const Shard& shard, const Layer& layer,
                             const float* qkv) const {
  const std::int64_t h = config_.hidden;
  const float* bias = layer.qkv.bias(pass.parameters);
  Attention a = attention_shape(pass, layer.qkv.layer);
  a.q = qkv, a.k = qkv + h, a.v = qkv + 2 * h;
  a.q_bias = bias, a.k_bias = bias + h, a.v_bias = bias + 2 * h;
  a.q_stride = a.k_stride = a.v_stride = 3 * h;
  ask_wanted_rows(shard, is_last(layer), a);
  return a;
}

// The last layer's output is read at the wanted rows only, so after its attention it runs on those alone: the
// same loss and gradients for a fraction of the work.
const TokenBatch& Encoder::output_rows(const Shard& shard, const Layer& layer) const {
  return is_last(layer) ? shard.wanted_rows() : shard.tokens;
}

void Encoder::layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                            const Scratch& scratch, float* y, LayerSaved& saved) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows();
  const std::int64_t h = config_.hidden, wide = config_.intermediate;
  const Parameters& p = pass.parameters;
  Arena& arena = pass.arena;
  saved.qkv = arena.floats(rows * 3 * h);
  saved.qkv_saved = layer.qkv.forward(pass, shard.tokens, x, saved.qkv);
  saved.attention = attention_forward(pass, shard, attention(pass, shard, layer, saved.qkv),
                                      takes_rows(shard, layer), scratch.attention);
  const float* residual = x;
  if (takes_rows(shard, layer)) {
    pass.ops.take_rows(shard.places, x, h, scratch.residual);
    residual = scratch.residual;
  }

  // out = LayerNorm(residual + dropout(dense(in) + bias)), used twice a layer.
  const auto add_and_norm = [&](const Linear& dense, LinearSaved& dense_saved, const float* in,
                                const Norm& norm, Site site, const float* shortcut, NormSaved& norm_saved) {
    norm_saved.normalized = arena.floats(out_rows * h);
    norm_saved.inverse_std = arena.floats(out_rows);
    const bool drops = site != Site::AttentionOutput || description_.attention_output_dropout;
    const DropoutKey key = dropout_key(pass, dense.layer, site, drops ? hidden_threshold_ : 0);
    norm_saved.mask = draw_mask(pass, key, out_batch, h);
    dense_saved = dense.forward(pass, out_batch, in, norm_saved.normalized);
    pass.ops.residual_norm_forward({.x = norm_saved.normalized,
                                    .bias = dense.bias(p),
                                    .keep_bits = norm_saved.mask,
                                    .keep_scale = keep_scale(key.threshold),
                                    .residual = shortcut,
                                    .gamma = p.value(norm.gamma),
                                    .beta = norm.beta_value(p),
                                    .epsilon = static_cast<float>(description_.norm_epsilon),
                                    .rows = out_rows,
                                    .cols = h,
                                    .normalized = norm_saved.normalized,
                                    .inverse_std = norm_saved.inverse_std,
                                    .y = y});
  };
  add_and_norm(layer.attention_output, saved.attention_output_saved, saved.attention.context,
               layer.attention_norm, Site::AttentionOutput, residual, saved.attention_norm);
  // y now holds the attention block's output, which is the MLP's input and residual.
  const bool keep_wide = pass.checkpointing != Checkpointing::Selective;
  float* intermediate = keep_wide ? arena.floats(out_rows * wide) : scratch.intermediate;
  saved.intermediate = keep_wide ? intermediate : nullptr;
  saved.intermediate_saved = layer.intermediate.forward(pass, out_batch, y, intermediate);
  pass.ops.bias_activation_forward(description_.activation, intermediate, layer.intermediate.bias(p),
                                   out_rows, wide, scratch.wide);
  add_and_norm(layer.mlp_output, saved.mlp_output_saved, scratch.wide, layer.mlp_norm, Site::MlpOutput, y,
               saved.mlp_norm);
}

std::unique_ptr<Activations> Encoder::forward(const Pass& pass, const Shard& shard, bool keep) const {
  auto result = std::make_unique<Saved>();
  Saved& saved = *result;
  const std::int64_t rows = shard.tokens.rows(), h = config_.hidden, wide = config_.intermediate;
  Arena& arena = pass.arena;
  const bool keep_layers = keep && pass.checkpointing != Checkpointing::Full;
  const bool keep_inputs = keep && pass.checkpointing == Checkpointing::Full;
  embed(pass, shard.tokens, saved);
  // Taken before the layers: what a layer keeps for backward must not lie above memory that only its forward
  // needs.
  Scratch& scratch = saved.scratch;
  for (float*& output : scratch.outputs) output = arena.floats(rows * h);
  scratch.wide = arena.floats(rows * wide);
  if (pass.checkpointing == Checkpointing::Selective) scratch.intermediate = arena.floats(rows * wide);
  scratch.attention = arena.floats(pass.ops.attention_scratch(shard.tokens, attention_shape(pass, 0)));
  if (shard.wants != WantedRows::All) scratch.residual = arena.floats(shard.wanted.rows() * h);

  const float* x = saved.embedded;
  saved.layers.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    saved.inputs.push_back(x);
    float* y = keep_inputs ? arena.floats(output_rows(shard, layers_[i]).rows() * h) : scratch.outputs[i % 2];
    const std::int64_t mark = arena.mark();
    layer_forward(pass, shard, layers_[i], x, scratch, y, saved.layers[i]);
    if (!keep_layers) arena.release_to(mark);
    x = y;
  }
  saved.hidden = x;
  return result;
}

// ---- backward

void Encoder::norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                            const float* dy, float* dz) const {
  const Parameters& p = pass.parameters;
  pass.ops.norm_backward({.dy = dy,
                          .normalized = saved.normalized,
                          .inverse_std = saved.inverse_std,
                          .gamma = p.value(norm.gamma),
                          .rows = rows,
                          .cols = config_.hidden,
                          .dz = dz,
                          .dgamma = p.gradient(norm.gamma, pass.gradients),
                          .dbeta = norm.beta_gradient(p, pass.gradients)});
}

void Encoder::mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer,
                           const Scratch& scratch, const LayerSaved& saved, const float* d_dense,
                           float* dx) const {
  const std::int64_t rows = batch.rows(), wide = config_.intermediate;
  const Parameters& p = pass.parameters;
  float* d_wide = pass.arena.floats(rows * wide);
  const bool again = saved.intermediate == nullptr;  // selective checkpointing
  const float* input =
      again || layer.intermediate.needs_input(p)
          ? norm_output(pass, layer.attention_norm, saved.attention_norm, rows, config_.hidden)
          : nullptr;
  float* intermediate = saved.intermediate;
  if (again) {
    intermediate = scratch.intermediate;
    const ArenaScope inner(pass.arena);
    layer.intermediate.forward(pass, batch, input, intermediate);
    pass.ops.add_bias(intermediate, layer.intermediate.bias(p), rows, wide);
  }
  float* activated = nullptr;
  if (layer.mlp_output.needs_input(p)) {
    activated = scratch.wide;
    pass.ops.activation_forward(description_.activation, intermediate, rows * wide, activated);
  }
  layer.mlp_output.backward(pass, batch, activated, d_dense, saved.mlp_output_saved, d_wide);
  pass.ops.activation_backward(description_.activation, d_wide, intermediate, rows * wide, d_wide);
  layer.intermediate.backward(pass, batch, input, d_wide, saved.intermediate_saved, dx);
}

void Encoder::layer_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                             const Scratch& forward_scratch, const float* x, const LayerSaved& saved,
                             const float* dy, float* dx) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows(), h = config_.hidden;
  Arena& arena = pass.arena;
  const ArenaScope scratch(arena);
  // Gradient of a dense layer's output from that of the residual sum, through its dropout.
  const auto of_dense = [&](const NormSaved& norm, const float* dz) {
    return through_dropout(pass, norm.mask, hidden_threshold_, out_rows, h, dz);
  };

  float* dz = arena.floats(out_rows * h);  // of the sum before a norm: the dense branch's and the residual's
  float* d_attention = arena.floats(out_rows * h);  // of the attention block's output
  norm_backward(pass, layer.mlp_norm, saved.mlp_norm, out_rows, dy, dz);
  {
    const ArenaScope mlp(arena);
    mlp_backward(pass, out_batch, layer, forward_scratch, saved, of_dense(saved.mlp_norm, dz), d_attention);
  }
  pass.ops.add(dz, out_rows * h, d_attention);

  norm_backward(pass, layer.attention_norm, saved.attention_norm, out_rows, d_attention, dz);
  {
    const ArenaScope attend(arena);
    const float* d_dense = of_dense(saved.attention_norm, dz);
    float* d_context = d_attention;  // free again
    layer.attention_output.backward(pass, out_batch, saved.attention.context, d_dense,
                                    saved.attention_output_saved, d_context);
    float* d_qkv = arena.floats(rows * 3 * h);
    attention_backward(pass, shard, attention(pass, shard, layer, saved.qkv), takes_rows(shard, layer),
                       saved.attention.lse, d_context,
                       {.dq = d_qkv, .dk = d_qkv + h, .dv = d_qkv + 2 * h, .stride = 3 * h});
    layer.qkv.backward(pass, shard.tokens, x, d_qkv, saved.qkv_saved, dx);
  }
  if (dx == nullptr) return;
  if (takes_rows(shard, layer))
    pass.ops.add_rows(shard.places, dz, h, dx);
  else
    pass.ops.add(dz, rows * h, dx);
}

void Encoder::embed_backward(const Pass& pass, const TokenBatch& batch, const Saved& saved, float* d) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  if (saved.embedding_norm.mask != nullptr) {
    pass.ops.dropout_apply(d, saved.embedding_norm.mask, keep_scale(hidden_threshold_), rows, h, d);
  }
  norm_backward(pass, embedding_norm_, saved.embedding_norm, rows, d, d);
  float* position = p.gradient(position_, pass.gradients);
  pass.ops.embed_backward(batch, d, h, config_.embedding_padding_id(), p.gradient(word_, pass.gradients),
                          position == nullptr ? nullptr : position + position_start(),
                          type_ ? p.gradient(*type_, pass.gradients) : nullptr);
}

void Encoder::backward(const Pass& pass, const Shard& shard, Activations& activations,
                       const float* d_hidden) const {
  auto& saved = static_cast<Saved&>(activations);
  const std::int64_t rows = shard.tokens.rows();
  const Scratch& scratch = saved.scratch;
  float* d_rows = scratch.outputs[layers_.size() % 2];
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const ArenaScope layer_scope(pass.arena);
    const Layer& layer = layers_[i];
    const float* x = saved.embedded;
    if (pass.checkpointing == Checkpointing::Full) {
      x = saved.inputs[i];
      saved.layers[i] = {};
      layer_forward(pass, shard, layer, x, scratch, scratch.outputs[(layers_.size() + 1) % 2],
                    saved.layers[i]);
    } else if (i > 0) {
      x = norm_output(pass, layers_[i - 1].mlp_norm, saved.layers[i - 1].mlp_norm, rows, config_.hidden);
    }
    // Nothing below the first layer trains in LoRA: its input needs no gradient.
    float* dx = i > 0 || trains_embeddings_ ? d_rows : nullptr;
    layer_backward(pass, shard, layer, scratch, x, saved.layers[i], is_last(layer) ? d_hidden : d_rows, dx);
    pass.done(part_of(layer.qkv.layer));
  }
  if (trains_embeddings_) embed_backward(pass, shard.tokens, saved, d_rows);
}

}  // namespace batchwright::engine
