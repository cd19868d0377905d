#include "engine/classifier_head.h"

#include "engine/adapters.h"
#include "engine/block.h"

namespace batchwright::engine {
namespace {

// Before the projection, as Transformers' classes choose it.
double dropout_rate(const model::ModelConfig& config, WantedRows wants) {
  if (wants == WantedRows::Last) return 0;  // a decoder's classifier has none
  if (!model::is_encoder(config.architecture)) return config.classifier_dropout.value_or(0.1);
  const bool tokens_of_distilbert =
      wants == WantedRows::Labelled && config.architecture == model::Architecture::DistilBert;
  return tokens_of_distilbert ? config.hidden_dropout : config.head_dropout();
}

}  // namespace

ClassifierHead::ClassifierHead(const model::ModelConfig& config, const run::TrainingOptions& options,
                               const std::vector<model::Module>& modules, WantedRows wants,
                               Parameters& parameters)
    : wants_(wants) {
  const double rate = dropout_rate(config, wants);
  threshold_ = dropout_threshold(rate > 0 ? options.model_dropout.value_or(rate) : 0);
  input_threshold_ = config.architecture == model::Architecture::Roberta ? threshold_ : 0;
  squash_ = config.architecture == model::Architecture::DistilBert ? Squash::Relu : Squash::Tanh;
  const auto declare = [&](const model::Module& module) {
    const bool trains = module.part == model::Part::Head || options.method == run::Method::Full;
    Linear linear{.weights = {},
                  .biases = {},
                  .in = module.in,
                  .out = module.out,
                  .layer = config.layers,
                  .adapters = {}};
    linear.weights.push_back(
        parameters.declare(module.name + ".weight", {module.out, module.in}, trains, true));
    if (module.bias)
      linear.biases.push_back(parameters.declare(module.name + ".bias", {module.out}, trains, false));
    return linear;
  };
  if (modules.size() > 1) dense_ = declare(modules.front());
  projection_ = declare(modules.back());
}

void ClassifierHead::add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                                  const run::LoraOptions& options) {
  if (dense_) engine::add_adapters(parameters, *dense_, {Site::LoraPooler}, wrapped_modules, options);
}

const float* ClassifierHead::drop(const Pass& pass, const TokenBatch& rows, Site site,
                                  std::uint32_t threshold, std::int64_t cols, const float* x,
                                  std::uint32_t*& mask) const {
  mask = draw_mask(pass, dropout_key(pass, projection_.layer, site, threshold), rows, cols);
  return through_dropout(pass, mask, threshold, rows.rows(), cols, x);
}

ClassifierHead::Saved ClassifierHead::forward(const Pass& pass, const TokenBatch& rows,
                                              const float* hidden) const {
  const std::int64_t count = rows.rows(), cols = projection_.in;
  const Parameters& p = pass.parameters;
  Saved saved;
  const float* x = hidden;
  if (dense_) {
    saved.input = drop(pass, rows, Site::HeadDense, input_threshold_, cols, hidden, saved.input_mask);
    saved.pooled = pass.arena.floats(count * cols);
    saved.dense = dense_->forward(pass, rows, saved.input, saved.pooled);
    pass.ops.bias_squash_forward(squash_, saved.pooled, dense_->bias(p), count, cols);
    x = saved.pooled;
  }
  saved.dropped = drop(pass, rows, Site::HeadInput, threshold_, cols, x, saved.mask);
  saved.logits = pass.arena.floats(count * width());
  saved.projection = projection_.forward(pass, rows, saved.dropped, saved.logits);
  if (!projection_.biases.empty()) pass.ops.add_bias(saved.logits, projection_.bias(p), count, width());
  return saved;
}

const float* ClassifierHead::logits(const Pass& pass, const Shard& shard, const float* hidden) const {
  return forward(pass, shard.wanted_rows(), hidden).logits;
}

double ClassifierHead::loss(const Pass& pass, const Shard& shard, const float* hidden) const {
  const ArenaScope scope(pass.arena);
  return pass.ops.cross_entropy(shard.targets, forward(pass, shard.wanted_rows(), hidden).logits, width(), 0);
}

double ClassifierHead::backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                                float* d_hidden) const {
  const ArenaScope scope(pass.arena);
  const TokenBatch& rows = shard.wanted_rows();
  const std::int64_t count = rows.rows(), cols = projection_.in;
  const Saved saved = forward(pass, rows, hidden);
  const double loss = pass.ops.cross_entropy(shard.targets, saved.logits, width(), loss_scale);
  float* d = dense_ ? pass.arena.floats(count * cols) : d_hidden;
  projection_.backward(pass, rows, saved.dropped, saved.logits, saved.projection, d);
  if (saved.mask != nullptr) {
    pass.ops.dropout_apply(d, saved.mask, keep_scale(threshold_), count, cols, d);
  }
  if (dense_) {
    pass.ops.squash_backward(squash_, saved.pooled, count * cols, d);
    dense_->backward(pass, rows, saved.input, d, saved.dense, d_hidden);
    if (saved.input_mask != nullptr) {
      pass.ops.dropout_apply(d_hidden, saved.input_mask, keep_scale(input_threshold_), count, cols, d_hidden);
    }
  }
  return loss;
}

}  // namespace batchwright::engine
