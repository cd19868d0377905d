#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "hardware/gpu.h"
#include "plan/batch_arithmetic.h"
#include "plan/block_memory.h"
#include "plan/precision.h"

namespace batchwright::plan {

// The places where a step's memory can be at its highest.
enum class Moment { Loss, BackwardFirst, BackwardLast, OptimizerStep };
std::string_view name_of(Moment moment);

// Bytes on one device at the peak, by what they are. They sum to the peak.
struct MemoryParts {
  double weights = 0, adapters = 0, gradients = 0, optimizer_state = 0;
  double activations = 0;  // kept for the backward pass
  double loss = 0;         // logits, their copies and gradients
  double temporary = 0;    // recomputed block, gradients of activations, gathered weights, optimizer copies
  double allocator = 0;    // kept by the caching allocator and not in use (counters reserved and process)
  double context = 0;      // the CUDA context and libraries (counter process)

  double total() const {
    return weights + adapters + gradients + optimizer_state + activations + loss + temporary + allocator +
           context;
  }
};

struct MemoryPrediction {
  MemoryParts parts;  // in the counter that the request names
  Moment moment = Moment::Loss;
  double allocated = 0;  // torch.cuda.max_memory_allocated
  double reserved = 0;   // torch.cuda.max_memory_reserved when there is room
  double process = 0;    // what nvidia-smi shows
  double context = 0;    // the share of `process` that no torch counter sees
  // The least memory the process can live with: the allocator gives its slack back before it gives up.
  double needed = 0;

  double in(Counter counter) const {
    return counter == Counter::Allocated ? allocated : (counter == Counter::Reserved ? reserved : process);
  }
};

// A request's memory with everything that does not depend on the split worked out once. Keeps references:
// shape and request must outlive it.
class MemoryModel {
 public:
  MemoryModel(const ModelShape& shape, const Request& request, const hardware::Device& device);

  // Peak over one optimizer step of `split`, every example of the longest length.
  MemoryPrediction predict(const Split& split) const;

 private:
  // Bytes that are there whatever the micro-batch.
  struct Fixed {
    double weights = 0, adapters = 0, gradients = 0, states = 0;
    double optimizer_temporary = 0;                // copies that the optimizer's step makes
    double buffers = 0;                            // communication buffers
    double gathered_root = 0, gathered_block = 0;  // weights that sharding brings together for a while
    double block_gradients = 0;                    // whole gradients of one block before they are scattered
    double cast_weights = 0, cast_block = 0;       // 16-bit copies that autocast makes of fp32 weights
    double head_gradients = 0, largest_gradient = 0, late_gradients = 0;
    double accumulated_gradients = 0;  // held over micro-steps
  };

  MemoryPrediction predict_native(const Split& split) const;
  void count_weights();
  void count_optimizer();
  void apply_sharding();
  double block_as_gathered() const;
  MemoryParts at(Moment moment, const Split& split) const;
  MemoryParts at_loss(const Split& split, MemoryParts parts) const;
  MemoryParts in_backward(const Split& split, bool first, MemoryParts parts) const;
  double block_kept() const;  // bytes a token that one block keeps between forward and backward
  void add_counters(MemoryPrediction& prediction, double tokens) const;

  const ModelShape& shape_;
  const Request& request_;
  const hardware::Device& device_;
  Precision precision_;
  BlockMemory block_;
  LossMemory loss_;
  Fixed fixed_;
  double trained_ = 0;          // parameters with gradients
  double embedding_saved_ = 0;  // bytes a token before the first block
};

}  // namespace batchwright::plan
