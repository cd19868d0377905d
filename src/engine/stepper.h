#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/token_file.h"
#include "engine/counting_ops.h"
#include "engine/loaded_model.h"
#include "engine/memory.h"
#include "engine/optimizer.h"
#include "engine/window.h"
#include "engine/workers.h"
#include "profile/phase_clock.h"
#include "profile/trace.h"

namespace batchwright::engine {

struct StepOutcome {
  double loss = 0;       // mean over the effective batch
  double grad_norm = 0;  // before clipping
  std::int64_t micro_steps = 0, examples = 0, real_tokens = 0, padded_tokens = 0;
  double seconds = 0;
  profile::PhaseSeconds phases{};
};

struct Evaluation {
  std::int64_t examples = 0, targets = 0;
  double loss = 0;                                      // mean over targets
  std::vector<std::pair<std::string, double>> metrics;  // the task's (data/metric.h), or perplexity
  double seconds = 0;
};

// Optimizer steps over one effective batch each, whatever the cut. Owns the threads' activations and
// gradients.
class Stepper {
 public:
  Stepper(LoadedModel& model, const data::TokenFile& tokens, const run::TrainingOptions& options);

  // Forward and backward of the whole window: gradients of (sum of losses / labels in the window) are in
  // gradients() afterwards, summed over threads by the optimizer or sum_gradients(). Throws OutOfMemory
  // before any work is done.
  StepOutcome accumulate(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step);
  // accumulate, then clip and AdamW with this learning rate.
  StepOutcome step(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step,
                   double learning_rate);
  // The window's gradient, summed over threads and copied to the host: trainable_count() floats.
  std::vector<float> sum_gradients();

  // Without dropout, `cut.micro_batch` examples a forward. logits, if given, receives those of every row:
  // [its targets, or for question answering its tokens, width].
  Evaluation evaluate(std::span<const std::uint32_t> rows, const Cut& cut,
                      std::vector<std::vector<float>>* logits = nullptr);

  // Records every step into `trace` until it is called with nullptr.
  void record_into(profile::Trace* trace);

  AdamW& optimizer() { return optimizer_; }
  int threads() const { return workers_.size(); }
  std::string device_name() const { return ops_.name(); }
  void release_activations();  // so that the next cut's peak is its own

 private:
  struct Lane {  // what one thread owns
    explicit Lane(DeviceKind device) : arena(device) {}
    Arena arena;
    Buffer gradients;
    profile::PhaseClock clock;
    std::vector<profile::PhaseSpan> spans;  // of the running step, when it is traced
    profile::PhaseSeconds phases{};
    double loss = 0;
  };

  Pass pass_of(Lane& lane, bool training, std::int64_t step, Checkpointing checkpointing);
  enum class Work { Train, Loss, LossAndLogits };
  void reserve(const WindowPlan& plan, Work work, Checkpointing checkpointing);
  // The logits of every sequence of a shard, on the host, without padding.
  std::vector<std::vector<float>> download_logits(const Shard& shard, const float* logits) const;

  LoadedModel& model_;
  const data::TokenFile& tokens_;
  run::TrainingOptions options_;
  Ops& ops_;
  CountingOps counting_{ops_};
  Workers workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  AdamW optimizer_;
  profile::Trace* trace_ = nullptr;
};

}  // namespace batchwright::engine
