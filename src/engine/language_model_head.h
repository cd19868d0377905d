#pragma once

#include "engine/head.h"
#include "model/parameters.h"

namespace batchwright::engine {

// A causal language model's head: a projection to the vocabulary, tied to the word embeddings or not, and the
// cross-entropy of the next token. Linear layer, loss and both gradients run over kChunkBytes of logits at a
// time, so that no step holds tokens x vocabulary.
class LanguageModelHead final : public Head {
 public:
  static constexpr std::int64_t kChunkBytes = 16 << 20;

  // `tied` is the body's word embeddings, used when the module is tied.
  LanguageModelHead(const model::Module& module, ParameterId tied, bool trains, Parameters& parameters);

  WantedRows wants() const override { return WantedRows::Labelled; }
  void add_adapters(Parameters&, const std::vector<std::string>&, const run::LoraOptions&) override {}
  double backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                  float* d_hidden) const override;
  double loss(const Pass& pass, const Shard& shard, const float* hidden) const override;
  // All rows x vocabulary: for tests and small models.
  const float* logits(const Pass& pass, const Shard& shard, const float* hidden) const override;
  std::int64_t width() const override { return vocabulary_; }

  // How many rows' logits are held at once: as many as fit kChunkBytes, at least 16.
  static std::int64_t chunk_rows(std::int64_t vocabulary);

 private:
  void project(const Pass& pass, const float* hidden, std::int64_t rows, float* logits) const;
  // Losses chunk by chunk; d_hidden nullptr: without gradients.
  double run(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
             float* d_hidden) const;

  std::int64_t vocabulary_, hidden_;
  ParameterId weight_;
};

}  // namespace batchwright::engine
