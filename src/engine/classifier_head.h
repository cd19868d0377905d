#pragma once

#include <optional>

#include "engine/head.h"
#include "model/parameters.h"

namespace batchwright::engine {

// One class a wanted row: for every sequence (its first or last token) or for every labelled token.
// hidden -> [dense layer, tanh or ReLU] -> dropout -> projection -> cross-entropy. BERT's dense layer is its
// pooler, which belongs to the body: frozen, and wrapped by adapters, when only adapters train. RoBERTa drops
// out before its dense layer too.
class ClassifierHead final : public Head {
 public:
  ClassifierHead(const model::ModelConfig& config, const run::TrainingOptions& options,
                 const std::vector<model::Module>& modules, WantedRows wants, Parameters& parameters);

  WantedRows wants() const override { return wants_; }
  void add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                    const run::LoraOptions& options) override;
  double backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                  float* d_hidden) const override;
  double loss(const Pass& pass, const Shard& shard, const float* hidden) const override;
  const float* logits(const Pass& pass, const Shard& shard, const float* hidden) const override;
  std::int64_t width() const override { return projection_.out; }

 private:
  struct Saved {
    const float *input = nullptr, *dropped = nullptr;  // of the dense layer and of the projection
    float *pooled = nullptr, *logits = nullptr;        // all [wanted rows, ...]
    std::uint32_t *input_mask = nullptr, *mask = nullptr;
    LinearSaved dense, projection;
  };
  Saved forward(const Pass& pass, const TokenBatch& rows, const float* hidden) const;

  // x after a dropout with this site's mask: x itself when nothing is dropped.
  const float* drop(const Pass& pass, const TokenBatch& rows, Site site, std::uint32_t threshold,
                    std::int64_t cols, const float* x, std::uint32_t*& mask) const;

  WantedRows wants_;
  std::uint32_t threshold_, input_threshold_;  // input_threshold_: before the dense layer
  Squash squash_;
  std::optional<Linear> dense_;
  Linear projection_;
};

}  // namespace batchwright::engine
