#pragma once

#include <memory>

#include "engine/body.h"
#include "engine/head.h"
#include "model/config.h"
#include "profile/phase_clock.h"
#include "run/options.h"

namespace batchwright::engine {

// A body and its head: what is trained. Threads share one object.
class Network {
 public:
  Network(std::unique_ptr<Body> body, std::unique_ptr<Head> head)
      : body_(std::move(body)), head_(std::move(head)) {}

  // Forward, loss and backward of one micro-batch or shard. Gradients of loss_scale * the sum of losses are
  // added to pass.gradients. Returns the unscaled sum. `clock` may be nullptr.
  double forward_backward(const Pass& pass, const Shard& shard, double loss_scale,
                          profile::PhaseClock* clock) const;
  struct Evaluated {
    double loss = 0;                // the sum of losses
    const float* logits = nullptr;  // [wanted rows, width()], in arena memory until it is released
  };
  // Without gradients; logits only when they are wanted.
  Evaluated evaluate(const Pass& pass, const Shard& shard, bool with_logits) const;

  std::int64_t width() const { return head_->width(); }
  WantedRows wants() const { return head_->wants(); }

 private:
  std::unique_ptr<Body> body_;
  std::unique_ptr<Head> head_;
};

// Declares the model's parameters (not yet allocated) and returns it. Throws Error(Unsupported) for a family
// or an activation that the engine does not have.
std::unique_ptr<Network> make_network(const model::ModelConfig& config, const run::TrainingOptions& options,
                                      data::Task task, std::int64_t classes, Parameters& parameters);

}  // namespace batchwright::engine
