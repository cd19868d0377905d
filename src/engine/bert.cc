#include "engine/bert.h"

#include <fmt/format.h>

#include "base/error.h"
#include "engine/adapters.h"

namespace batchwright::engine {

using profile::Phase;

Bert::Bert(const model::ModelConfig& config, const run::TrainingOptions& options, std::int64_t classes,
           Parameters& parameters)
    : config_(config), classes_(classes), trains_body_(options.method == run::Method::Full) {
  const auto rate = [&](double p) { return dropout_threshold(options.model_dropout.value_or(p)); };
  hidden_threshold_ = rate(config.hidden_dropout);
  attention_threshold_ = rate(config.attention_dropout);
  head_threshold_ = rate(config.head_dropout());
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
  declare(parameters, options);
}

Bert::Norm Bert::declare_norm(Parameters& p, const std::string& name, bool trainable) const {
  Norm norm;
  norm.gamma = p.declare(name + ".weight", {config_.hidden}, trainable, false);
  norm.beta = p.declare(name + ".bias", {config_.hidden}, trainable, false);
  return norm;
}

void Bert::declare(Parameters& p, const run::TrainingOptions& options) {
  const std::int64_t h = config_.hidden;
  const bool train = trains_body_;
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
  pooler_ = linear({"bert.pooler.dense"}, h, h, config_.layers, train);
  head_ = linear({"classifier"}, h, classes_, config_.layers, true);  // PEFT's modules_to_save for SEQ_CLS
  if (options.method == run::Method::Lora) {
    const auto wrapped = wrapped_module_names(config_, options.lora);
    for (Layer& layer : layers_) {
      add_adapters(p, layer.qkv, {Site::LoraQuery, Site::LoraKey, Site::LoraValue}, wrapped, options.lora);
      add_adapters(p, layer.attention_output, {Site::LoraAttentionOutput}, wrapped, options.lora);
      add_adapters(p, layer.intermediate, {Site::LoraIntermediate}, wrapped, options.lora);
      add_adapters(p, layer.mlp_output, {Site::LoraMlpOutput}, wrapped, options.lora);
    }
    add_adapters(p, pooler_, {Site::LoraPooler}, wrapped, options.lora);
  }
}

// ---- forward

void Bert::embed(const Pass& pass, const TokenBatch& batch, Saved& saved) const {
  const std::int64_t rows = batch.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  saved.embedded = pass.arena.floats(rows * h);
  NormSaved& norm = saved.embedding_norm;
  // Frozen embeddings need nothing for backward: the norm then works inside the layer's input.
  norm.normalized = trains_body_ ? pass.arena.floats(rows * h) : saved.embedded;
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

Attention Bert::attention(const Pass& pass, const Layer& layer, const float* qkv) const {
  return {.qkv = qkv,
          .bias = layer.qkv.bias(pass.parameters),
          .heads = config_.heads,
          .head_dim = config_.head_dim,
          .causal = false,
          .first_query_only = is_last(layer),
          .dropout = dropout_key(pass, layer.qkv.layer, Site::AttentionProbabilities, attention_threshold_)};
}

// The last layer's output is read at first tokens only, so after its attention it runs on those rows alone:
// the same loss and gradients for a fraction of the work.
const TokenBatch& Bert::output_rows(const Shard& shard, const Layer& layer) const {
  return is_last(layer) ? shard.firsts : shard.tokens;
}

void Bert::layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                         const Scratch& scratch, float* y, LayerSaved& saved) const {
  const TokenBatch& out_batch = output_rows(shard, layer);
  const std::int64_t rows = shard.tokens.rows(), out_rows = out_batch.rows();
  const std::int64_t h = config_.hidden, wide = config_.intermediate;
  const Parameters& p = pass.parameters;
  Arena& arena = pass.arena;
  saved.qkv = arena.floats(rows * 3 * h);
  saved.lse = arena.floats(out_rows * config_.heads);
  saved.context = arena.floats(out_rows * h);
  saved.qkv_saved = layer.qkv.forward(pass, shard.tokens, x, saved.qkv);
  pass.ops.attention_forward(shard.tokens, attention(pass, layer, saved.qkv), saved.context, saved.lse,
                             scratch.attention);
  const float* residual = x;
  if (is_last(layer)) {
    pass.ops.take_first_rows(shard.tokens, x, h, scratch.firsts);
    residual = scratch.firsts;
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

// x is the last layer's output at the first tokens, [size, hidden].
void Bert::head_forward(const Pass& pass, const TokenBatch& firsts, const float* x, Saved& saved) const {
  const std::int64_t size = firsts.rows(), h = config_.hidden;
  const Parameters& p = pass.parameters;
  saved.first_rows = x;
  saved.pooled = pass.arena.floats(size * h);
  saved.pooler_saved = pooler_.forward(pass, firsts, x, saved.pooled);
  pass.ops.bias_tanh_forward(saved.pooled, pooler_.bias(p), size, h);
  saved.dropped = saved.pooled;
  const DropoutKey key = dropout_key(pass, config_.layers, Site::Pooled, head_threshold_);
  if (key.threshold != 0) {
    saved.pooled_mask = pass.arena.words(size * ((h + 31) / 32));
    saved.dropped = pass.arena.floats(size * h);
    pass.ops.dropout_bits(key, firsts, h, saved.pooled_mask);
    pass.ops.dropout_apply(saved.pooled, saved.pooled_mask, keep_scale(key.threshold), size, h,
                           saved.dropped);
  }
  saved.logits = pass.arena.floats(size * classes_);
  saved.head_saved = head_.forward(pass, firsts, saved.dropped, saved.logits);
  pass.ops.add_bias(saved.logits, head_.bias(p), size, classes_);
}

void Bert::forward(const Pass& pass, const Shard& shard, bool keep, Saved& saved) const {
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
  Attention any = attention(pass, layers_.front(), nullptr);
  any.first_query_only = false;
  scratch.attention = arena.floats(pass.ops.attention_scratch(shard.tokens, any));
  scratch.firsts = arena.floats(shard.firsts.rows() * h);

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
  head_forward(pass, shard.firsts, x, saved);
}

const float* Bert::logits(const Pass& pass, const Shard& shard) const {
  Saved saved;
  forward(pass, shard, false, saved);
  return saved.logits;
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

void Bert::head_backward(const Pass& pass, const TokenBatch& firsts, const Saved& saved, float* dx) const {
  const std::int64_t size = firsts.rows(), h = config_.hidden;
  const ArenaScope scratch(pass.arena);
  float* d = pass.arena.floats(size * h);
  head_.backward(pass, firsts, saved.dropped, saved.logits, saved.head_saved, d);
  if (saved.pooled_mask != nullptr) {
    pass.ops.dropout_apply(d, saved.pooled_mask, keep_scale(head_threshold_), size, h, d);
  }
  pass.ops.tanh_backward(saved.pooled, size * h, d);
  pooler_.backward(pass, firsts, saved.first_rows, d, saved.pooler_saved, dx);
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
    {
      const ArenaScope inner(arena);
      const Attention a = attention(pass, layer, saved.qkv);
      pass.ops.attention_backward(shard.tokens, a, saved.lse, d_context, d_qkv,
                                  arena.floats(pass.ops.attention_scratch(shard.tokens, a)));
    }
    layer.qkv.backward(pass, shard.tokens, x, d_qkv, saved.qkv_saved, dx);
  }
  if (dx == nullptr) return;
  if (is_last(layer))
    pass.ops.add_first_rows(shard.tokens, dz, h, dx);
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

double Bert::forward_backward(const Pass& pass, const Shard& shard, double loss_scale,
                              profile::PhaseClock* clock) const {
  const ArenaScope whole(pass.arena);
  const auto enter = [&](Phase phase) {
    if (clock != nullptr) clock->enter(phase);
  };
  enter(Phase::Forward);
  Saved saved;
  forward(pass, shard, true, saved);
  enter(Phase::Loss);
  const double loss = pass.ops.cross_entropy(shard.firsts, saved.logits, classes_, loss_scale);
  enter(Phase::Backward);
  const std::int64_t rows = shard.tokens.rows();
  const Scratch& scratch = saved.scratch;
  float* d_firsts = pass.arena.floats(shard.firsts.rows() * config_.hidden);
  float* d_rows = scratch.outputs[layers_.size() % 2];  // the other one may hold the head's input
  head_backward(pass, shard.firsts, saved, d_firsts);
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
    float* dx = i > 0 || trains_body_ ? d_rows : nullptr;
    layer_backward(pass, shard, layer, scratch, x, saved.layers[i], is_last(layer) ? d_firsts : d_rows, dx);
  }
  if (trains_body_) embed_backward(pass, shard.tokens, saved, d_rows);
  enter(Phase::Residual);
  return loss;
}

}  // namespace batchwright::engine
