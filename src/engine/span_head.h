#pragma once

#include "engine/head.h"
#include "model/parameters.h"

namespace batchwright::engine {

// Extractive question answering, as Transformers' ...ForQuestionAnswering: two logits a token, one for the
// answer's first token and one for its last; the loss is the cross-entropy of each over the tokens of the
// sequence. Padding takes no part, where Transformers gives it logits like any token's: so the loss here does
// not depend on how long the batch is padded, and equals Transformers' of the example alone. A shard's
// targets are two a sequence: the answer's first and last token, counted from the sequence's first row.
class SpanHead final : public Head {
 public:
  SpanHead(const model::ModelConfig& config, const run::TrainingOptions& options, const model::Module& module,
           Parameters& parameters);

  WantedRows wants() const override { return WantedRows::All; }
  void add_adapters(Parameters&, const std::vector<std::string>&, const run::LoraOptions&) override {}
  double backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                  float* d_hidden) const override;
  double loss(const Pass& pass, const Shard& shard, const float* hidden) const override;
  const float* logits(const Pass& pass, const Shard& shard, const float* hidden) const override;
  std::int64_t width() const override { return 2; }

 private:
  // The hidden states after dropout (DistilBERT's alone has one here), and its mask.
  const float* drop(const Pass& pass, const TokenBatch& tokens, const float* hidden,
                    std::uint32_t*& mask) const;
  // Logits without bias (softmax does not see it), [2, rows], so that a sequence's lie together.
  float* by_end(const Pass& pass, const TokenBatch& tokens, const float* hidden) const;
  // Their cross-entropies, summed; they become the gradients of loss_scale * the sum, padding's zero.
  double cross_entropies(const Pass& pass, const Shard& shard, float* logits, double loss_scale) const;

  std::int64_t hidden_, layer_;
  std::uint32_t threshold_;
  ParameterId weight_ = 0, bias_ = 0;
};

}  // namespace batchwright::engine
