#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/workers.h"
#include "data/token_file.h"
#include "engine/counting_ops.h"
#include "engine/gradient_sum.h"
#include "engine/loaded_model.h"
#include "engine/loss_scaler.h"
#include "engine/memory.h"
#include "engine/optimizer.h"
#include "engine/process_group.h"
#include "engine/window.h"
#include "profile/phase_clock.h"
#include "profile/trace.h"

namespace batchwright::engine {

struct StepOutcome {
  double loss = 0;                   // mean over the effective batch, on all ranks
  double grad_norm = 0;              // before clipping; of a skipped step it is not finite
  std::optional<double> loss_scale;  // that this step used; fp16 only
  bool skipped = false;              // the gradient overflowed float16, and the weights stayed as they were
  // Of this rank.
  std::int64_t micro_steps = 0, examples = 0, real_tokens = 0, padded_tokens = 0;
  // Of all ranks together.
  struct {
    std::int64_t examples = 0, real_tokens = 0, padded_tokens = 0, most_peak_bytes = 0;
  } whole;
  double seconds = 0;
  profile::PhaseSeconds phases{};
};

struct Evaluation {
  std::int64_t examples = 0, targets = 0;
  double loss = 0;                                      // mean over targets
  std::vector<std::pair<std::string, double>> metrics;  // the task's (data/metric.h), or perplexity
  double seconds = 0;
};

// Optimizer steps over one effective batch each, whatever the cut and however many ranks share it. Owns the
// threads' activations and gradients.
class Stepper {
 public:
  // group: nullptr when this process trains alone. With it, all ranks call the same functions with the same
  // arguments: each takes its share of the rows, and losses, norms and weights are the same on all.
  Stepper(LoadedModel& model, const data::TokenFile& tokens, const run::TrainingOptions& options,
          ProcessGroup* group = nullptr);

  // Forward and backward of this rank's share of the window: gradients of (sum of losses / labels in the
  // window) are in the threads' blocks afterwards, not yet summed over threads; in a group their sum has
  // begun. Throws OutOfMemory, on all ranks, before any work is done.
  StepOutcome accumulate(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step);
  // accumulate, then clip and AdamW with this learning rate.
  StepOutcome step(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step,
                   double learning_rate);
  // The window's gradient, summed over threads and copied to the host: trainable_count() floats.
  std::vector<float> sum_gradients();

  // Without dropout, cut like a step, or row by row where that does not fit. Throws OutOfMemory, on all
  // ranks, when a single row does not fit either. logits, if given, receives those of every row: [its
  // targets, or for question answering its tokens, width].
  Evaluation evaluate(std::span<const std::uint32_t> rows, const Cut& cut,
                      std::vector<std::vector<float>>* logits = nullptr);

  // Records every step into `trace` until it is called with nullptr.
  void record_into(profile::Trace* trace);

  AdamW& optimizer() { return optimizer_; }
  LossScaler& loss_scaler() { return scaler_; }
  int threads() const { return workers_.size(); }
  int rank() const { return group_ == nullptr ? 0 : group_->rank(); }
  int ranks() const { return group_ == nullptr ? 1 : group_->size(); }
  std::string device_name() const { return ops_.name(); }
  // Makes room for the heaviest share of a micro-batch of these rows in every thread, whichever thread may
  // get it, so that no later step with this cut needs more. Throws OutOfMemory.
  void reserve_for(std::span<const std::uint32_t> rows, const Cut& cut);
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

  WindowPlan plan_of(std::span<const std::uint32_t> rows, const Cut& cut) const;
  Evaluation whole_evaluation(const WindowPlan& plan, const std::vector<double>& losses);
  void share_logits(std::vector<std::vector<float>>& by_row);
  std::vector<std::uint32_t> share_of(std::span<const std::uint32_t> rows) const;
  double agree(const std::string& out_of_memory, double own_targets);
  void sum_over_ranks(std::span<const std::uint32_t> rows, StepOutcome& outcome);
  Pass pass_of(Lane& lane, bool training, std::int64_t step, Checkpointing checkpointing);
  enum class Work { Train, Loss, LossAndLogits };
  std::int64_t bytes_for(const Shard& shard, Work work, Checkpointing checkpointing);  // of an arena
  void reserve(const WindowPlan& plan, Work work, Checkpointing checkpointing);
  std::string shortage(const WindowPlan& plan, Work work, Checkpointing checkpointing);
  WindowPlan plan_of_evaluation(std::span<const std::uint32_t> rows, const Cut& cut, Work work);
  // The logits of every sequence of a shard, on the host, without padding.
  std::vector<std::vector<float>> download_logits(const Shard& shard, const float* logits) const;

  LoadedModel& model_;
  const data::TokenFile& tokens_;
  run::TrainingOptions options_;
  Ops& ops_;
  CountingOps counting_{ops_};
  Workers workers_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  ProcessGroup* group_;
  std::optional<GradientSum> gradient_sum_;
  AdamW optimizer_;
  LossScaler scaler_;
  profile::Trace* trace_ = nullptr;
};

}  // namespace batchwright::engine
