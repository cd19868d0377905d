#include "engine/bert.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/adapters.h"

namespace batchwright::engine {

Bert::Bert(const model::ModelConfig& config, const run::TrainingOptions& options, Parameters& parameters)
    : config_(config), trains_(options.method == run::Method::Full) {
  const auto rate = [&](double p) { return dropout_threshold(options.model_dropout.value_or(p)); };
  hidden_threshold_ = rate(config.hidden_dropout);
  attention_threshold_ = rate(config.attention_dropout);
  if (config.activation != "gelu") {
    throw Error(ErrorKind::Unsupported, "config.json", fmt::format("hidden_act is \"{}\"", config.activation),
                "The engine has \"gelu\" for BERT");
  }
  const JsonFields fields(config.raw, "config.json");
  const std::string positions = fields.text("position_embedding_type", "absolute");
  if (positions != "absolute") {
    throw Error(ErrorKind::Unsupported, "config.json",
                fmt::format("position_embedding_type is \"{}\"", positions),
                "The engine has \"absolute\" for BERT");
  }
  for (const char* decoder : {"is_decoder", "add_cross_attention"}) {
    if (fields.boolean(decoder, false)) {
      throw Error(ErrorKind::Unsupported, "config.json", fmt::format("{} is true", decoder),
                  "The engine trains BERT as an encoder");
    }
  }
  if (config.type_vocabulary < 1) {
    throw Error(ErrorKind::Unsupported, "config.json", "type_vocab_size is 0; BERT has token types");
  }
  declare(parameters);
}

Bert::Norm Bert::declare_norm(Parameters& p, const std::string& name, bool trainable) const {
  Norm norm;
  norm.gamma = p.declare(name + ".weight", {config_.hidden}, trainable, false);
  norm.beta = p.declare(name + ".bias", {config_.hidden}, trainable, false);
  return norm;
}

void Bert::declare(Parameters& p) {
  const std::int64_t h = config_.hidden;
  const bool train = trains_;
  word_ = p.declare("bert.embeddings.word_embeddings.weight", {config_.vocabulary, h}, train, true);
  position_ =
      p.declare("bert.embeddings.position_embeddings.weight", {config_.max_positions, h}, train, true);
  type_ =
      p.declare("bert.embeddings.token_type_embeddings.weight", {config_.type_vocabulary, h}, train, true);
  embedding_norm_ = declare_norm(p, "bert.embeddings.LayerNorm", train);
  const auto linear = [&](std::initializer_list<std::string> names, std::int64_t in, std::int64_t out_each,
                          std::int64_t layer, bool trainable) {
    Linear l{.weights = {}, .biases = {}, .in = in, .out = 0, .layer = layer, .adapters = {}};
    for (const std::string& name : names) {
      l.weights.push_back(p.declare(name + ".weight", {out_each, in}, trainable, true));
      l.out += out_each;
    }
    for (const std::string& name : names)
      l.biases.push_back(p.declare(name + ".bias", {out_each}, trainable, false));
    return l;
  };
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const std::string name = fmt::format("bert.encoder.layer.{}.", i), self = name + "attention.self.";
    Layer layer;
    layer.qkv = linear({self + "query", self + "key", self + "value"}, h, h, i, train);
    layer.attention_output = linear({name + "attention.output.dense"}, h, h, i, train);
    layer.attention_norm = declare_norm(p, name + "attention.output.LayerNorm", train);
    layer.intermediate = linear({name + "intermediate.dense"}, h, config_.intermediate, i, train);
    layer.mlp_output = linear({name + "output.dense"}, config_.intermediate, h, i, train);
    layer.mlp_norm = declare_norm(p, name + "output.LayerNorm", train);
    layers_.push_back(std::move(layer));
  }
}

void Bert::add_adapters(Parameters& p, const std::vector<std::string>& wrapped,
                        const run::LoraOptions& options) {
  using engine::add_adapters;
  for (Layer& layer : layers_) {
    add_adapters(p, layer.qkv, {Site::LoraQuery, Site::LoraKey, Site::LoraValue}, wrapped, options);
    add_adapters(p, layer.attention_output, {Site::LoraAttentionOutput}, wrapped, options);
    add_adapters(p, layer.intermediate, {Site::LoraIntermediate}, wrapped, options);
    add_adapters(p, layer.mlp_output, {Site::LoraMlpOutput}, wrapped, options);
  }
}

// ---- forward

void Bert::embed(const Pass& pass, const TokenBatch& batch, Saved& saved) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  saved.embedded = pass.arena.floats(rows * h);
  NormSaved& norm = saved.embedding_norm;
  // Frozen embeddings need nothing for backward: the norm then works inside the layer's input.
  norm.normalized = trains_ ? pass.arena.floats(rows * h) : saved.embedded;
  norm.inverse_std = pass.arena.floats(rows);
  pass.ops.embed(batch, p.value(word_), p.value(position_), p.value(type_), h, norm.normalized);
  pass.ops.residual_norm_forward({.x = norm.normalized,
                                  .gamma = p.value(embedding_norm_.gamma),
                                  .beta = p.value(embedding_norm_.beta),
                                  .epsilon = static_cast<float>(config_.norm_epsilon),
                                  .rows = rows,
                                  .cols = h,
                                  .normalized = norm.normalized,
                                  .inverse_std = norm.inverse_std,
                                  .y = saved.embedded});
  const DropoutKey key = dropout_key(pass, 0, Site::Embedding, hidden_threshold_);
  if (key.threshold == 0) return;
  norm.mask = pass.arena.words(rows * ((h + 31) / 32));
  pass.ops.dropout_bits(key, batch, h, norm.mask);
  pass.ops.dropout_apply(saved.embedded, norm.mask, keep_scale(key.threshold), rows, h, saved.embedded);
}

Attention Bert::attention(const Pass& pass, const Shard& shard, const Layer& layer, const float* qkv) const {
  return {.qkv = qkv,
          .bias = layer.qkv.bias(pass.parameters),
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .causal = false,
          .first_query_only = is_last(layer) && shard.wants == WantedRows::First,
          .dropout = dropout_key(pass, layer.qkv.layer, Site::AttentionProbabilities, attention_threshold_)};
}

// The last layer's output is read at the wanted rows only, so after its attention it runs on those alone: the
// same loss and gradients for a fraction of the work.
const TokenBatch& Bert::output_rows(const Shard& shard, const Layer& layer) const {
  return is_last(layer) ? shard.wanted_rows() : shard.tokens;
}

// Fills saved.context and saved.lse from saved.qkv. Asked by first tokens only, attention itself gives the
// wanted rows; otherwise they are taken out of its output.
void Bert::attention_forward(const Pass& pass, const Shard& shard, const Layer& layer, const Scratch& scratch,
                             LayerSaved& saved) const {
  const std::int64_t rows = shard.tokens.rows(), h = config_.hidden;
  const std::int64_t out_rows = output_rows(shard, layer).rows();
  const Attention a = attention(pass, shard, layer, saved.qkv);
  saved.lse = pass.arena.floats((a.first_query_only ? out_rows : rows) * config_.heads);
  saved.context = pass.arena.floats(out_rows * h);
  if (a.first_query_only || !takes_rows(shard, layer)) {
    pass.ops.attention_forward(shard.tokens, a, saved.context, saved.lse, scratch.attention);
    return;
  }
  const ArenaScope inner(pass.arena);
  float* all = pass.arena.floats(rows * h);
  pass.ops.attention_forward(shard.tokens, a, all, saved.lse, scratch.attention);
  pass.ops.take_rows(shard.places, all, h, saved.context);
}

void Bert::layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                         const Scratch& scratch, float* y, LayerSaved& saved) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows();
  const std::int64_t h = config_.hidden, wide = config_.intermediate;
  const Parameters& p = pass.parameters;
  Arena& arena = pass.arena;
  saved.qkv = arena.floats(rows * 3 * h);
  saved.qkv_saved = layer.qkv.forward(pass, shard.tokens, x, saved.qkv);
  attention_forward(pass, shard, layer, scratch, saved);
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
    const DropoutKey key = dropout_key(pass, dense.layer, site, hidden_threshold_);
    if (key.threshold != 0) {
      norm_saved.mask = arena.words(out_rows * ((h + 31) / 32));
      pass.ops.dropout_bits(key, out_batch, h, norm_saved.mask);
    }
    dense_saved = dense.forward(pass, out_batch, in, norm_saved.normalized);
    pass.ops.residual_norm_forward({.x = norm_saved.normalized,
                                    .bias = dense.bias(p),
                                    .keep_bits = norm_saved.mask,
                                    .keep_scale = keep_scale(key.threshold),
                                    .residual = shortcut,
                                    .gamma = p.value(norm.gamma),
                                    .beta = p.value(norm.beta),
                                    .epsilon = static_cast<float>(config_.norm_epsilon),
                                    .rows = out_rows,
                                    .cols = h,
                                    .normalized = norm_saved.normalized,
                                    .inverse_std = norm_saved.inverse_std,
                                    .y = y});
  };
  add_and_norm(layer.attention_output, saved.attention_output_saved, saved.context, layer.attention_norm,
               Site::AttentionOutput, residual, saved.attention_norm);
  // y now holds the attention block's output, which is the MLP's input and residual.
  const bool keep_wide = pass.checkpointing != Checkpointing::Selective;
  float* intermediate = keep_wide ? arena.floats(out_rows * wide) : scratch.intermediate;
  saved.intermediate = keep_wide ? intermediate : nullptr;
  saved.intermediate_saved = layer.intermediate.forward(pass, out_batch, y, intermediate);
  pass.ops.bias_gelu_forward(intermediate, layer.intermediate.bias(p), out_rows, wide, scratch.wide);
  add_and_norm(layer.mlp_output, saved.mlp_output_saved, scratch.wide, layer.mlp_norm, Site::MlpOutput, y,
               saved.mlp_norm);
}

std::unique_ptr<Activations> Bert::forward(const Pass& pass, const Shard& shard, bool keep) const {
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
  Attention any = attention(pass, shard, layers_.front(), nullptr);
  any.first_query_only = false;
  scratch.attention = arena.floats(pass.ops.attention_scratch(shard.tokens, any));
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

const float* Bert::norm_output(const Pass& pass, const Norm& norm, const NormSaved& saved,
                               std::int64_t rows) const {
  float* y = pass.arena.floats(rows * config_.hidden);
  pass.ops.scale_shift(saved.normalized, pass.parameters.value(norm.gamma), pass.parameters.value(norm.beta),
                       rows, config_.hidden, y);
  return y;
}

void Bert::norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                         const float* dy, float* dz) const {
  const Parameters& p = pass.parameters;
  pass.ops.norm_backward(dy, saved.normalized, saved.inverse_std, p.value(norm.gamma), rows, config_.hidden,
                         dz, p.gradient(norm.gamma, pass.gradients), p.gradient(norm.beta, pass.gradients));
}

void Bert::mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                        const LayerSaved& saved, const float* d_dense, float* dx) const {
  const std::int64_t rows = batch.rows(), wide = config_.intermediate;
  const Parameters& p = pass.parameters;
  float* d_wide = pass.arena.floats(rows * wide);
  const bool again = saved.intermediate == nullptr;  // selective checkpointing
  const float* input = again || layer.intermediate.needs_input(p)
                           ? norm_output(pass, layer.attention_norm, saved.attention_norm, rows)
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
    pass.ops.gelu_forward(intermediate, rows * wide, activated);
  }
  layer.mlp_output.backward(pass, batch, activated, d_dense, saved.mlp_output_saved, d_wide);
  pass.ops.gelu_backward(d_wide, intermediate, rows * wide, d_wide);
  layer.intermediate.backward(pass, batch, input, d_wide, saved.intermediate_saved, dx);
}

// d_qkv from the gradient of the context at the rows that the layer's output has.
void Bert::attention_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                              const LayerSaved& saved, const float* d_context, float* d_qkv) const {
  const ArenaScope inner(pass.arena);
  const Attention a = attention(pass, shard, layer, saved.qkv);
  if (takes_rows(shard, layer) && !a.first_query_only) {
    const std::int64_t count = shard.tokens.rows() * config_.hidden;
    float* all = pass.arena.floats(count);
    pass.ops.zero(all, count);
    pass.ops.add_rows(shard.places, d_context, config_.hidden, all);
    d_context = all;
  }
  pass.ops.attention_backward(shard.tokens, a, saved.lse, d_context, d_qkv,
                              pass.arena.floats(pass.ops.attention_scratch(shard.tokens, a)));
}

void Bert::layer_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                          const Scratch& forward_scratch, const float* x, const LayerSaved& saved,
                          const float* dy, float* dx) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows(), h = config_.hidden;
  Arena& arena = pass.arena;
  const ArenaScope scratch(arena);
  // Gradient of a dense layer's output from that of the residual sum, through its dropout.
  const auto through_dropout = [&](const NormSaved& norm, const float* dz) -> const float* {
    if (norm.mask == nullptr) return dz;
    float* dropped = arena.floats(out_rows * h);
    pass.ops.dropout_apply(dz, norm.mask, keep_scale(hidden_threshold_), out_rows, h, dropped);
    return dropped;
  };

  float* dz = arena.floats(out_rows * h);  // of the sum before a norm: the dense branch's and the residual's
  float* d_attention = arena.floats(out_rows * h);  // of the attention block's output
  norm_backward(pass, layer.mlp_norm, saved.mlp_norm, out_rows, dy, dz);
  {
    const ArenaScope mlp(arena);
    mlp_backward(pass, out_batch, layer, forward_scratch, saved, through_dropout(saved.mlp_norm, dz),
                 d_attention);
  }
  pass.ops.add(dz, out_rows * h, d_attention);

  norm_backward(pass, layer.attention_norm, saved.attention_norm, out_rows, d_attention, dz);
  {
    const ArenaScope attend(arena);
    const float* d_dense = through_dropout(saved.attention_norm, dz);
    float* d_context = d_attention;  // free again
    layer.attention_output.backward(pass, out_batch, saved.context, d_dense, saved.attention_output_saved,
                                    d_context);
    float* d_qkv = arena.floats(rows * 3 * h);
    attention_backward(pass, shard, layer, saved, d_context, d_qkv);
    layer.qkv.backward(pass, shard.tokens, x, d_qkv, saved.qkv_saved, dx);
  }
  if (dx == nullptr) return;
  if (takes_rows(shard, layer))
    pass.ops.add_rows(shard.places, dz, h, dx);
  else
    pass.ops.add(dz, rows * h, dx);
}

void Bert::embed_backward(const Pass& pass, const TokenBatch& batch, const Saved& saved, float* d) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  if (saved.embedding_norm.mask != nullptr) {
    pass.ops.dropout_apply(d, saved.embedding_norm.mask, keep_scale(hidden_threshold_), rows, h, d);
  }
  norm_backward(pass, embedding_norm_, saved.embedding_norm, rows, d, d);
  pass.ops.embed_backward(batch, d, h, p.gradient(word_, pass.gradients),
                          p.gradient(position_, pass.gradients), p.gradient(type_, pass.gradients));
}

void Bert::backward(const Pass& pass, const Shard& shard, Activations& activations,
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
      x = norm_output(pass, layers_[i - 1].mlp_norm, saved.layers[i - 1].mlp_norm, rows);
    }
    // Nothing below the first layer trains in LoRA: its input needs no gradient.
    float* dx = i > 0 || trains_ ? d_rows : nullptr;
    layer_backward(pass, shard, layer, scratch, x, saved.layers[i], is_last(layer) ? d_hidden : d_rows, dx);
  }
  if (trains_) embed_backward(pass, shard.tokens, saved, d_rows);
}

}  // namespace batchwright::engine
