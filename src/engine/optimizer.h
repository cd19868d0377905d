#pragma once

#include <cstdint>
#include <vector>

#include "base/workers.h"
#include "engine/memory.h"
#include "engine/ops.h"
#include "engine/parameters.h"
#include "run/options.h"

namespace batchwright::engine {

// The learning rate of optimizer step `step` (0-based) of `total`: warm-up rises linearly over warmup_steps,
// then the schedule falls, as transformers.get_linear_schedule_with_warmup and its siblings. Counted in
// optimizer steps.
double learning_rate_at(const run::TrainingOptions& options, std::int64_t step, std::int64_t total);

// AdamW with decoupled weight decay over the contiguous trainable block, after global-norm clipping: one pass
// to sum the threads' gradients and their squares, one to update.
class AdamW {
 public:
  AdamW(const Parameters& parameters, const run::TrainingOptions& options, Ops& ops);

  // Sums gradients[1..] into gradients[0], divides by loss_scale, clips, updates the weights. Returns the
  // norm before clipping; when that is not finite and may_skip is set, nothing is updated and no step is
  // counted. The result depends on the number of threads, not on their timing.
  double step(Workers& workers, const std::vector<float*>& gradients, double learning_rate,
              double loss_scale = 1, bool may_skip = false);

  std::int64_t steps_done() const { return steps_done_; }
  void set_steps_done(std::int64_t steps) { steps_done_ = steps; }
  float* moment1() const { return moment1_.floats(); }
  float* moment2() const { return moment2_.floats(); }

 private:
  struct Segment {
    std::int64_t begin = 0, end = 0;
    bool decays = false;
  };
  void update(std::int64_t begin, std::int64_t end, const float* gradient, float scale,
              double learning_rate) const;

  const Parameters& parameters_;
  run::TrainingOptions options_;
  Ops& ops_;
  Buffer moment1_, moment2_;
  std::vector<Segment> segments_;
  std::int64_t steps_done_ = 0;
};

}  // namespace batchwright::engine
