#include "engine/span_head.h"

#include "engine/block.h"

namespace batchwright::engine {

SpanHead::SpanHead(const model::ModelConfig& config, const run::TrainingOptions& options,
                   const model::Module& module, Parameters& parameters)
    : hidden_(config.hidden), layer_(config.layers), threshold_(0) {
  if (config.architecture == model::Architecture::DistilBert) {
    const double rate = JsonFields(config.raw, "config.json").number("qa_dropout", 0, 1, 0.1);
    threshold_ = dropout_threshold(rate > 0 ? options.model_dropout.value_or(rate) : 0);
  }
  weight_ = parameters.declare(module.name + ".weight", {2, hidden_}, true, true);
  bias_ = parameters.declare(module.name + ".bias", {2}, true, false);
}

const float* SpanHead::drop(const Pass& pass, const TokenBatch& tokens, const float* hidden,
                            std::uint32_t*& mask) const {
  mask = draw_mask(pass, dropout_key(pass, layer_, Site::HeadInput, threshold_), tokens, hidden_);
  return through_dropout(pass, mask, threshold_, tokens.rows(), hidden_, hidden);
}

float* SpanHead::by_end(const Pass& pass, const TokenBatch& tokens, const float* hidden) const {
  const std::int64_t rows = tokens.rows();
  float* logits = pass.arena.floats(2 * rows);
  pass.ops.gemm({.transpose_b = true,
                 .m = 2,
                 .n = rows,
                 .k = hidden_,
                 .a = pass.parameters.value(weight_),
                 .lda = hidden_,
                 .b = hidden,
                 .ldb = hidden_,
                 .c = logits,
                 .ldc = rows});
  return logits;
}

double SpanHead::cross_entropies(const Pass& pass, const Shard& shard, float* logits,
                                 double loss_scale) const {
  const std::int64_t rows = shard.tokens.rows();
  const std::span<const std::int32_t> targets = shard.targets;
  double total = 0;
  for (std::size_t i = 0; i < shard.tokens.sequences.size(); ++i) {
    const Sequence& sequence = shard.tokens.sequences[i];
    for (std::size_t end = 0; end < 2; ++end) {
      float* own = logits + static_cast<std::int64_t>(end) * rows + sequence.first_row;
      total += pass.ops.cross_entropy(targets.subspan(2 * i + end, 1), own, sequence.valid, loss_scale);
      pass.ops.zero(own + sequence.valid, sequence.rows - sequence.valid);
    }
  }
  return total;
}

double SpanHead::loss(const Pass& pass, const Shard& shard, const float* hidden) const {
  const ArenaScope scope(pass.arena);
  return cross_entropies(pass, shard, by_end(pass, shard.tokens, hidden), 0);
}

double SpanHead::backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                          float* d_hidden) const {
  const ArenaScope scope(pass.arena);
  const std::int64_t rows = shard.tokens.rows();
  std::uint32_t* mask = nullptr;
  hidden = drop(pass, shard.tokens, hidden, mask);
  float* d = by_end(pass, shard.tokens, hidden);
  const double loss = cross_entropies(pass, shard, d, loss_scale);
  pass.ops.gemm({.transpose_a = true,
                 .m = rows,
                 .n = hidden_,
                 .k = 2,
                 .a = d,
                 .lda = rows,
                 .b = pass.parameters.value(weight_),
                 .ldb = hidden_,
                 .c = d_hidden,
                 .ldc = hidden_});
  // The bias moves all logits of a softmax alike: its gradient is exactly zero.
  pass.ops.gemm({.m = 2,
                 .n = hidden_,
                 .k = rows,
                 .a = d,
                 .lda = rows,
                 .b = hidden,
                 .ldb = hidden_,
                 .beta = 1,
                 .c = pass.parameters.gradient(weight_, pass.gradients),
                 .ldc = hidden_});
  if (mask != nullptr)
    pass.ops.dropout_apply(d_hidden, mask, keep_scale(threshold_), rows, hidden_, d_hidden);
  return loss;
}

const float* SpanHead::logits(const Pass& pass, const Shard& shard, const float* hidden) const {
  const std::int64_t rows = shard.tokens.rows();
  float* logits = pass.arena.floats(rows * 2);
  pass.ops.gemm({.transpose_b = true,
                 .m = rows,
                 .n = 2,
                 .k = hidden_,
                 .a = hidden,
                 .lda = hidden_,
                 .b = pass.parameters.value(weight_),
                 .ldb = hidden_,
                 .c = logits,
                 .ldc = 2});
  pass.ops.add_bias(logits, pass.parameters.value(bias_), rows, 2);
  return logits;
}

}  // namespace batchwright::engine
