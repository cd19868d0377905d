#include <algorithm>

#include "plan/memory.h"

namespace batchwright::plan {
namespace {

// Cached blocks that batches of growing lengths leave behind, times what moves in a step. Fitted on
// modelscope/ms-swift's LoRA runs (texts from 91 tokens to a limit of 512 to 8192, one a micro-batch): 1
// to 2.
constexpr double kOutgrown = 1.5;
constexpr double kScoresLeft = 0.6;

}  // namespace

// What the caching allocator keeps beyond what is live, and what the process holds outside of it.
void MemoryModel::add_counters(MemoryPrediction& prediction, double tokens) const {
  constexpr double kMiB = 1048576.0;
  MemoryParts& parts = prediction.parts;
  // Inputs, the cuBLAS workspace (8 MiB, 32 on Hopper and later, two streams) and rounding to 512 bytes.
  parts.temporary +=
      device_.is_cpu()
          ? 0
          : 2 * (device_.architecture == "Hopper" || device_.architecture == "Blackwell" ? 32 : 8.1) * kMiB;
  prediction.allocated = parts.total();
  const double fixed = parts.weights + parts.adapters + parts.optimizer_state;
  const double moving = prediction.allocated - fixed;
  // Segments of 20 MiB are never full, freed blocks wait in the cache, and logits leave gaps that nothing
  // else fills. Fitted on fms-acceleration's nvidia-smi readings beside its allocated peaks, one device.
  const double unfilled = std::min(256 * kMiB, 0.06 * prediction.allocated);
  // Scores that a checkpointed block's backward pass frees leave blocks that logits and states do not fill
  // (fitcheck's runs with and without eager attention on a T4).
  const double scores =
      request_.attention == Attention::Eager && request_.checkpointing != Checkpointing::None
          ? kScoresLeft * 4 * static_cast<double>(shape_.config.heads * request_.longest()) * tokens
          : 0;
  const double slack = device_.is_cpu() ? 0
                                        : unfilled + 0.01 * fixed + 0.12 * moving +
                                              0.35 * loss_.logits_block * tokens + scores;
  // Texts of many lengths: a longer one finds no cached block that is large enough, and those that are stay.
  const bool lengths_vary = request_.lengths.counts.size() > 1;
  const double outgrown =
      device_.is_cpu() || !lengths_vary ? 0 : kOutgrown * (parts.activations + parts.loss + parts.temporary);
  const double context = device_.is_cpu() ? 0 : (530 + (request_.devices > 1 ? 500 : 0)) * kMiB;
  prediction.reserved = prediction.allocated + slack + outgrown;
  prediction.process = prediction.reserved + context;
  prediction.context = context;
  // Near the limit the allocator gives back what it can; several streams leave it more that it cannot.
  const bool streams = request_.devices > 1 && request_.sharding != Sharding::None;
  prediction.needed = prediction.allocated + (streams ? 0.1 : 0.03) * moving + context;
  if (request_.counter != Counter::Allocated) parts.allocator = slack + outgrown;
  if (request_.counter == Counter::Process) parts.context = context;
}

}  // namespace batchwright::plan
