#pragma once

#include "hardware/gpu.h"
#include "plan/batch_arithmetic.h"
#include "plan/block_memory.h"
#include "plan/precision.h"
#include "plan/shape.h"

namespace batchwright::plan {

// Seconds of one optimizer step on the slowest device. `launch` is what the host's work adds beyond what the
// device hides; the parts sum to the step.
struct TimeParts {
  double launch = 0;    // kernels started one by one by the host
  double products = 0;  // matrix products of the linear layers
  double attention = 0;
  double elementwise = 0;  // norms, activations, residuals, casts, dropout: bound by memory
  double loss = 0;
  double unpacking = 0;      // dequantisation of packed weights
  double communication = 0;  // what is not hidden behind the backward pass
  double optimizer = 0;
  double fixed = 0;  // data, logging and the loop itself, once a step

  double total() const {
    return launch + products + attention + elementwise + loss + unpacking + communication + optimizer + fixed;
  }
};

class TimeModel {
 public:
  TimeModel(const ModelShape& shape, const Request& request, const hardware::Device& device);

  TimeParts predict(const Split& split) const;

 private:
  double product_seconds(double tokens) const;
  double attention_seconds(double tokens, double length) const;
  double elementwise_traffic(double length) const;
  double elementwise_seconds(double tokens, double length) const;
  double loss_seconds(double tokens) const;
  double unpacking_seconds() const;
  double launch_seconds() const;
  double overlap_exponent() const;
  double optimizer_seconds() const;
  double linear_seconds(const LinearShape& linear, double tokens, bool trained, double forward_passes) const;
  double forward_passes() const;  // through a block and micro-batch: 2 with full checkpointing

  const ModelShape& shape_;
  const Request& request_;
  const hardware::Device& device_;
  hardware::Arithmetic arithmetic_;
  Precision precision_;
  BlockMemory block_;
  LossMemory loss_;
};

}  // namespace batchwright::plan
