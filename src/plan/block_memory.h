#pragma once

#include "plan/precision.h"
#include "plan/request.h"
#include "plan/shape.h"

namespace batchwright::plan {

// What one Transformer block costs in activations, in bytes a token of the micro-batch (the terms that grow
// with the square of the sequence are divided by it, so everything here is multiplied by tokens).
struct BlockMemory {
  double boundary = 0;        // its input: all that full checkpointing keeps
  double saved = 0;           // what the forward pass leaves for the backward pass, without checkpointing
  double scores = 0;          // of `saved`, attention's probabilities where they exist (eager attention)
  double selective = 0;       // the same as `saved` with selective checkpointing
  double forward_extra = 0;   // the largest temporaries of the forward pass, beyond what stays saved
  double backward_copy = 0;   // what a sharded backward pass holds a block beside `boundary`
  double backward_extra = 0;  // the same of the backward pass: gradients of activations
};

// Which tensors autograd keeps, operation by operation, for the modules of Transformers 4.57 and PEFT 0.17
// (read in their source; held to what their modules allocate by tests/plan/allocations_test.cc).
BlockMemory block_memory(const ModelShape& shape, const Request& request, const Precision& precision);

// Bytes a token of the last norm, the loss and what surrounds it.
struct LossMemory {
  double final_states = 0;  // the last hidden states and the final norm
  double forward = 0;       // logits and their copies while the loss is computed
  double backward = 0;      // the same while its gradient is computed
  double head_copy = 0;     // bytes, not a token: fp32 weights of the head while a chunk is computed
  double logits_block = 0;  // the largest single block: what the caching allocator cannot split well
};

LossMemory loss_memory(const ModelShape& shape, const Request& request, const Precision& precision);

}  // namespace batchwright::plan
