#include "engine/language_model_head.h"

#include <algorithm>

#include "base/error.h"

namespace batchwright::engine {

LanguageModelHead::LanguageModelHead(const model::Module& module, ParameterId tied, bool trains,
                                     Parameters& parameters)
    : vocabulary_(module.out), hidden_(module.in), weight_(tied) {
  if (module.bias) {
    throw Error(ErrorKind::Unsupported, "config.json", module.name + " has a bias, which the engine has not");
  }
  if (!module.tied) {
    weight_ = parameters.declare(module.name + ".weight", {vocabulary_, hidden_}, trains, true);
  }
}

std::int64_t LanguageModelHead::chunk_rows(std::int64_t vocabulary) {
  return std::max<std::int64_t>(16, kChunkBytes / (4 * vocabulary));
}

void LanguageModelHead::project(const Pass& pass, const float* hidden, std::int64_t rows,
                                float* logits) const {
  pass.ops.gemm({.transpose_b = true,
                 .m = rows,
                 .n = vocabulary_,
                 .k = hidden_,
                 .a = hidden,
                 .lda = hidden_,
                 .b = pass.parameters.value(weight_),
                 .ldb = hidden_,
                 .c = logits,
                 .ldc = vocabulary_});
}

double LanguageModelHead::run(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                              float* d_hidden) const {
  const ArenaScope scope(pass.arena);
  const std::span<const std::int32_t> targets = shard.targets;
  const std::int64_t rows = shard.wanted_rows().rows(), chunk = std::min(rows, chunk_rows(vocabulary_));
  float* logits = pass.arena.floats(chunk * vocabulary_);
  float* d_weight = d_hidden == nullptr ? nullptr : pass.parameters.gradient(weight_, pass.gradients);
  double loss = 0;
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const float* x = hidden + first * hidden_;
    project(pass, x, count, logits);
    loss += pass.ops.cross_entropy(
        targets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), logits,
        vocabulary_, loss_scale);
    if (d_hidden == nullptr) continue;
    pass.ops.gemm({.m = count,
                   .n = hidden_,
                   .k = vocabulary_,
                   .a = logits,
                   .lda = vocabulary_,
                   .b = pass.parameters.value(weight_),
                   .ldb = hidden_,
                   .c = d_hidden + first * hidden_,
                   .ldc = hidden_});
    if (d_weight == nullptr) continue;
    pass.ops.gemm({.transpose_a = true,
                   .m = vocabulary_,
                   .n = hidden_,
                   .k = count,
                   .a = logits,
                   .lda = vocabulary_,
                   .b = x,
                   .ldb = hidden_,
                   .beta = 1,
                   .c = d_weight,
                   .ldc = hidden_});
  }
  return loss;
}

double LanguageModelHead::backward(const Pass& pass, const Shard& shard, const float* hidden,
                                   double loss_scale, float* d_hidden) const {
  return run(pass, shard, hidden, loss_scale, d_hidden);
}

double LanguageModelHead::loss(const Pass& pass, const Shard& shard, const float* hidden) const {
  return run(pass, shard, hidden, 0, nullptr);
}

const float* LanguageModelHead::logits(const Pass& pass, const Shard& shard, const float* hidden) const {
  const std::int64_t rows = shard.wanted_rows().rows();
  float* logits = pass.arena.floats(rows * vocabulary_);
  project(pass, hidden, rows, logits);
  return logits;
}

}  // namespace batchwright::engine
