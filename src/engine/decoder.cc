#include "engine/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "engine/adapters.h"

namespace batchwright::engine {

using model::Role;

DecoderDescription rotary_decoder(const model::ModelConfig& config) {
  if (config.activation != "silu" && config.activation != "swish") {
    throw Error(ErrorKind::Unsupported, "config.json", fmt::format("hidden_act is \"{}\"", config.activation),
                fmt::format("The engine has \"silu\" for {}", config.model_type));
  }
  DecoderDescription description{.norm_epsilon = config.norm_epsilon,
                                 .rotary = model::rotary_of(config),
                                 .attention_dropout = config.attention_dropout};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    description.windows.push_back(model::attention_window(config, layer));
    description.score_scales.push_back(1.0f / std::sqrt(static_cast<float>(config.head_dim)));
  }
  return description;
}

Decoder::Decoder(const model::ModelConfig& config, const DecoderDescription& description,
                 const run::TrainingOptions& options, Parameters& parameters)
    : config_(config), description_(description) {
  const auto threshold = [&](double rate) { return dropout_threshold(options.model_dropout.value_or(rate)); };
  embedding_threshold_ = threshold(description.embedding_dropout);
  residual_threshold_ = threshold(description.residual_dropout);
  attention_threshold_ = threshold(description.attention_dropout);
  const Declaration declare(model::list_modules(config, model::Head::SequenceClassification), options,
                            parameters);
  word_ = declare.embedding(Role::WordEmbedding);
  if (!description.rotary) position_ = declare.embedding(Role::PositionEmbedding);
  trains_embeddings_ = parameters.at(word_).trainable || (position_ && parameters.at(*position_).trainable);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const bool fused = declare.find(Role::QueryKeyValue, i) != nullptr;
    const std::vector<Role> up = gated() ? std::vector{Role::Gate, Role::Up} : std::vector{Role::Up};
    parameters.enter_part(part_of(i));
    Layer layer;
    layer.attention_norm = declare.norm(Role::AttentionNorm, i);
    layer.qkv = fused ? declare.linear({Role::QueryKeyValue}, i)
                      : declare.linear({Role::Query, Role::Key, Role::Value}, i);
    if (declare.find(Role::QueryNorm, i) != nullptr) {
      layer.query_norm = declare.norm(Role::QueryNorm, i);
      layer.key_norm = declare.norm(Role::KeyNorm, i);
    }
    layer.attention_output = declare.linear({Role::AttentionOutput}, i);
    layer.mlp_norm = declare.norm(Role::MlpNorm, i);
    layer.up = declare.linear(up, i);
    layer.down = declare.linear({Role::Down}, i);
    layers_.push_back(std::move(layer));
  }
  final_norm_ = declare.norm(Role::FinalNorm);
}

void Decoder::add_adapters(Parameters& p, const std::vector<std::string>& wrapped,
                           const run::LoraOptions& options) {
  using engine::add_adapters;
  for (Layer& layer : layers_) {
    p.enter_part(part_of(layer.qkv.layer));
    add_adapters(p, layer.qkv, {Site::LoraQuery, Site::LoraKey, Site::LoraValue}, wrapped, options);
    add_adapters(p, layer.attention_output, {Site::LoraAttentionOutput}, wrapped, options);
    add_adapters(p, layer.up, {Site::LoraIntermediate, Site::LoraUp}, wrapped, options);
    add_adapters(p, layer.down, {Site::LoraMlpOutput}, wrapped, options);
  }
}

// ---- forward

// Taken before the layers: what a layer keeps for backward must not lie above memory that only its forward
// needs.
Decoder::Scratch Decoder::take_scratch(const Pass& pass, const Shard& shard, bool keep) const {
  const std::int64_t rows = shard.tokens.rows(), h = config_.hidden;
  Arena& arena = pass.arena;
  Scratch s;
  s.stream = arena.floats(rows * h);
  if (shard.wants != WantedRows::All) s.taken = arena.floats(shard.wanted.rows() * h);
  s.normed = arena.floats(rows * h);
  s.branch = arena.floats(rows * h);
  s.activated = arena.floats(rows * config_.intermediate);
  if (keep && pass.checkpointing == Checkpointing::Selective) s.wide = arena.floats(rows * layers_[0].up.out);
  if (norms_heads()) s.rotated = arena.floats(rows * (query_width() + key_width()));
  if (description_.rotary) {
    std::int64_t longest = 1;
    for (const Sequence& sequence : shard.tokens.sequences) longest = std::max(longest, sequence.rows);
    const std::vector<float>& frequencies = description_.rotary->frequencies;
    s.cosine = arena.floats(longest * static_cast<std::int64_t>(frequencies.size()));
    s.sine = arena.floats(longest * static_cast<std::int64_t>(frequencies.size()));
    pass.ops.rotary_table({.frequencies = frequencies,
                           .scale = static_cast<float>(description_.rotary->scale),
                           .positions = longest,
                           .cosine = s.cosine,
                           .sine = s.sine});
  }
  s.attention = arena.floats(pass.ops.attention_scratch(shard.tokens, attention_shape(pass, 0)));
  return s;
}

void Decoder::embed(const Pass& pass, const TokenBatch& batch, Saved& saved, float* out) const {
  const std::int64_t h = config_.hidden;
  const Parameters& p = pass.parameters;
  pass.ops.embed(batch, p.value(word_), position_ ? p.value(*position_) : nullptr, nullptr, h, out);
  const DropoutKey key = dropout_key(pass, 0, Site::Embedding, embedding_threshold_);
  saved.embedding_mask = draw_mask(pass, key, batch, h);
  if (saved.embedding_mask == nullptr) return;
  pass.ops.dropout_apply(out, saved.embedding_mask, keep_scale(key.threshold), batch.rows(), h, out);
}

void Decoder::norm_forward(const Pass& pass, const Norm& norm, const ResidualNorm& input,
                           NormSaved& saved) const {
  ResidualNorm n = input;
  saved.normalized = pass.arena.floats(n.rows * config_.hidden);
  saved.inverse_std = pass.arena.floats(n.rows);
  n.kind = description_.norm;
  n.gamma = pass.parameters.value(norm.gamma);
  n.beta = norm.beta_value(pass.parameters);
  n.epsilon = static_cast<float>(description_.norm_epsilon);
  n.cols = config_.hidden;
  n.normalized = saved.normalized;
  n.inverse_std = saved.inverse_std;
  pass.ops.residual_norm_forward(n);
}

// Queries, keys and values of all rows into saved.qkv, as attention takes them.
void Decoder::project_heads(const Pass& pass, const TokenBatch& batch, const Layer& layer,
                            const Scratch& scratch, LayerSaved& saved) const {
  const std::int64_t rows = batch.rows(), stride = layer.qkv.out;
  saved.qkv = pass.arena.floats(rows * stride);
  saved.qkv_saved = layer.qkv.forward(pass, batch, scratch.normed, saved.qkv);
  if (!description_.rotary) return;  // attention adds the bias
  if (const float* bias = layer.qkv.bias(pass.parameters)) pass.ops.add_bias(saved.qkv, bias, rows, stride);
  if (!norms_heads()) {
    rotate(pass, batch, scratch, nullptr, saved.qkv, stride, saved.qkv, stride, false);
    return;
  }
  saved.query_inverse = pass.arena.floats(rows * config_.heads);
  saved.key_inverse = pass.arena.floats(rows * config_.kv_heads);
  HeadNorm norm{.x = saved.qkv,
                .rows = rows,
                .heads = config_.heads,
                .head_dim = config_.head_dim,
                .stride = stride,
                .epsilon = static_cast<float>(description_.norm_epsilon),
                .inverse_std = saved.query_inverse};
  pass.ops.head_norm_forward(norm);
  norm.x += query_width();
  norm.heads = config_.kv_heads;
  norm.inverse_std = saved.key_inverse;
  pass.ops.head_norm_forward(norm);
  rotate(pass, batch, scratch, &layer, saved.qkv, stride, scratch.rotated, query_width() + key_width(),
         false);
}

void Decoder::rotate(const Pass& pass, const TokenBatch& batch, const Scratch& scratch, const Layer* gammas,
                     const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride,
                     bool backward) const {
  const Parameters& p = pass.parameters;
  Rotation r{.x = x,
             .gamma = gammas == nullptr ? nullptr : p.value(gammas->query_norm->gamma),
             .cosine = scratch.cosine,
             .sine = scratch.sine,
             .rows = batch.rows(),
             .heads = config_.heads,
             .head_dim = config_.head_dim,
             .x_stride = x_stride,
             .y_stride = y_stride,
             .y = y,
             .backward = backward};
  pass.ops.rotate(batch, r);
  r.x += query_width();
  r.y += query_width();
  r.heads = config_.kv_heads;
  r.gamma = gammas == nullptr ? nullptr : p.value(gammas->key_norm->gamma);
  pass.ops.rotate(batch, r);
}

Attention Decoder::attention_shape(const Pass& pass, std::int64_t layer) const {
  Attention a{.heads = config_.heads, .kv_heads = config_.kv_heads, .head_dim = config_.head_dim};
  a.scale = description_.score_scales[static_cast<std::size_t>(layer)];
  a.causal = true;
  a.window = description_.windows[static_cast<std::size_t>(layer)];
  a.dropout = dropout_key(pass, layer, Site::AttentionProbabilities, attention_threshold_);
  return a;
}

Attention Decoder::attention(const Pass& pass, const Shard& shard, const Layer& layer, const Scratch& scratch,
                             const LayerSaved& saved) const {
  Attention a = attention_shape(pass, layer.qkv.layer);
  const bool apart = norms_heads();
  a.q = apart ? scratch.rotated : saved.qkv;
  a.k = a.q + query_width();
  a.v = saved.qkv + query_width() + key_width();
  a.v_stride = layer.qkv.out;
  a.q_stride = a.k_stride = apart ? query_width() + key_width() : layer.qkv.out;
  const float* bias = layer.qkv.bias(pass.parameters);
  if (!description_.rotary && bias != nullptr) {
    a.q_bias = bias, a.k_bias = bias + query_width(), a.v_bias = bias + query_width() + key_width();
  }
  ask_wanted_rows(shard, is_last(layer), a);
  return a;
}

void Decoder::wide_forward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const float* x,
                           float* wide, LinearSaved& saved) const {
  saved = layer.up.forward(pass, batch, x, wide);
  if (const float* bias = layer.up.bias(pass.parameters)) {
    pass.ops.add_bias(wide, bias, batch.rows(), layer.up.out);
  }
}

void Decoder::activate(const Pass& pass, const float* wide, std::int64_t rows, float* out) const {
  if (gated())
    pass.ops.swiglu_forward(wide, rows, config_.intermediate, out);
  else
    pass.ops.activation_forward(*description_.activation, wide, rows * config_.intermediate, out);
}

// y += dropout(down(activation(up(normed)))).
void Decoder::mlp_forward(const Pass& pass, const TokenBatch& batch, const Layer& layer,
                          const Scratch& scratch, float* y, LayerSaved& saved) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const bool keep_wide = scratch.wide == nullptr;
  float* wide = keep_wide ? pass.arena.floats(rows * layer.up.out) : scratch.wide;
  saved.wide = keep_wide ? wide : nullptr;
  if (gated()) {
    wide_forward(pass, batch, layer, scratch.normed, wide, saved.up_saved);
    activate(pass, wide, rows, scratch.activated);
  } else {
    saved.up_saved = layer.up.forward(pass, batch, scratch.normed, wide);
    pass.ops.bias_activation_forward(*description_.activation, wide, layer.up.bias(pass.parameters), rows,
                                     layer.up.out, scratch.activated);
  }
  saved.down_saved = layer.down.forward(pass, batch, scratch.activated, scratch.branch);
  if (const float* bias = layer.down.bias(pass.parameters)) pass.ops.add_bias(scratch.branch, bias, rows, h);
  const DropoutKey key = dropout_key(pass, layer.down.layer, Site::MlpOutput, residual_threshold_);
  saved.mlp_mask = draw_mask(pass, key, batch, h);
  if (saved.mlp_mask == nullptr)
    pass.ops.add(scratch.branch, rows * h, y);
  else
    pass.ops.dropout_add(scratch.branch, saved.mlp_mask, keep_scale(key.threshold), rows, h, y);
}

// y may be x, except where rows are taken.
void Decoder::layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                            const Scratch& scratch, float* y, LayerSaved& saved) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows(), h = config_.hidden;
  norm_forward(pass, layer.attention_norm, {.x = x, .rows = rows, .y = scratch.normed}, saved.attention_norm);
  project_heads(pass, shard.tokens, layer, scratch, saved);
  const bool takes = takes_rows(shard, layer);
  saved.attention =
      attention_forward(pass, shard, attention(pass, shard, layer, scratch, saved), takes, scratch.attention);
  const float* residual = x;
  if (takes) {
    pass.ops.take_rows(shard.places, x, h, y);
    residual = y;
  }
  const DropoutKey key = dropout_key(pass, layer.down.layer, Site::AttentionOutput, residual_threshold_);
  saved.attention_mask = draw_mask(pass, key, out_batch, h);
  saved.attention_output_saved =
      layer.attention_output.forward(pass, out_batch, saved.attention.context, scratch.branch);
  norm_forward(pass, layer.mlp_norm,
               {.x = scratch.branch,
                .bias = layer.attention_output.bias(pass.parameters),
                .keep_bits = saved.attention_mask,
                .keep_scale = keep_scale(key.threshold),
                .residual = residual,
                .rows = out_rows,
                .sum = y,
                .y = scratch.normed},
               saved.mlp_norm);
  mlp_forward(pass, out_batch, layer, scratch, y, saved);
}

std::unique_ptr<Activations> Decoder::forward(const Pass& pass, const Shard& shard, bool keep) const {
  auto result = std::make_unique<Saved>();
  Saved& saved = *result;
  const std::int64_t h = config_.hidden;
  Arena& arena = pass.arena;
  const bool keep_layers = keep && pass.checkpointing != Checkpointing::Full;
  const bool keep_inputs = keep && pass.checkpointing == Checkpointing::Full;
  const Scratch& scratch = saved.scratch = take_scratch(pass, shard, keep);
  float* x = keep_inputs ? arena.floats(shard.tokens.rows() * h) : scratch.stream;
  embed(pass, shard.tokens, saved, x);
  saved.layers.resize(layers_.size());
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    saved.inputs.push_back(x);
    const bool takes = takes_rows(shard, layers_[i]);
    float* y = takes ? scratch.taken : x;
    if (keep_inputs && !takes) y = arena.floats(shard.tokens.rows() * h);
    const std::int64_t mark = arena.mark();
    layer_forward(pass, shard, layers_[i], x, scratch, y, saved.layers[i]);
    if (!keep_layers) arena.release_to(mark);
    x = y;
  }
  const std::int64_t out_rows = shard.wanted_rows().rows();
  float* hidden = arena.floats(out_rows * h);
  norm_forward(pass, final_norm_, {.x = x, .rows = out_rows, .y = hidden}, saved.final_norm);
  saved.hidden = hidden;
  return result;
}

}  // namespace batchwright::engine
