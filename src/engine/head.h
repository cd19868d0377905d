#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/linear.h"
#include "engine/parameters.h"
#include "engine/token_batch.h"
#include "model/config.h"
#include "run/options.h"

namespace batchwright::engine {

// What stands on a body: from the hidden states of the wanted rows, `hidden` [wanted rows, hidden], to losses
// and their gradients. Like Body, it holds neither weights nor activations.
class Head {
 public:
  virtual ~Head() = default;

  // The rows that it reads: decides what a shard's `wanted` and `targets` are.
  virtual WantedRows wants() const = 0;

  virtual void add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                            const run::LoraOptions& options) = 0;

  // Adds the gradients of the head's weights, of loss_scale * the sum of the shard's losses, and writes that
  // of its input to d_hidden [wanted rows, hidden]. Returns the unscaled sum.
  virtual double backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                          float* d_hidden) const = 0;

  // The sum of losses alone.
  virtual double loss(const Pass& pass, const Shard& shard, const float* hidden) const = 0;

  // Logits [wanted rows, width()], in arena memory, valid until the arena is released.
  virtual const float* logits(const Pass& pass, const Shard& shard, const float* hidden) const = 0;
  virtual std::int64_t width() const = 0;
};

// The head for sequence classification, as Transformers names and builds it for this family. Declares its
// parameters. Throws Error(Unsupported) for a family that has none here.
std::unique_ptr<Head> make_head(const model::ModelConfig& config, const run::TrainingOptions& options,
                                std::int64_t classes, Parameters& parameters);

}  // namespace batchwright::engine
