#pragma once

#include <memory>

#include "engine/linear.h"
#include "engine/parameters.h"
#include "engine/token_batch.h"
#include "model/config.h"
#include "profile/phase_clock.h"
#include "run/options.h"

namespace batchwright::engine {

// A sequence classifier: one label an example. Holds no weights (Parameters does) and no activations (the
// arena does), so threads share one object.
class Classifier {
 public:
  virtual ~Classifier() = default;

  // Forward, loss and backward of one micro-batch or shard. Gradients of loss_scale * sum of per-example
  // losses are added to pass.gradients. Returns the unscaled sum of losses. `clock` may be nullptr.
  virtual double forward_backward(const Pass& pass, const Shard& shard, double loss_scale,
                                  profile::PhaseClock* clock) const = 0;
  // Logits [size, classes] in arena memory, valid until the arena is released.
  virtual const float* logits(const Pass& pass, const Shard& shard) const = 0;

  virtual std::int64_t classes() const = 0;
};

// Declares the model's parameters (not yet allocated) and returns it. Throws Error(Unsupported) for a family
// or an activation that the engine does not have.
std::unique_ptr<Classifier> make_classifier(const model::ModelConfig& config,
                                            const run::TrainingOptions& options, std::int64_t classes,
                                            Parameters& parameters);

}  // namespace batchwright::engine
