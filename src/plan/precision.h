#pragma once

#include "plan/request.h"
#include "plan/shape.h"

namespace batchwright::plan {

// How many bytes each kind of number takes in the run that a request describes.
struct Precision {
  double packed_weight = 2;   // a weight of a block's linear layers; 0.5625 for NF4
  double plain_weight = 2;    // embeddings, norms, biases, the head
  double trained_weight = 2;  // trained in full (the adapters have their own)
  double gradient = 2;
  double state = 2;       // one AdamW moment
  double adapter = 4;     // an adapter's weight, gradient and each moment
  double activation = 2;  // outputs of linear layers
  double residual = 2;    // the residual stream
  double product = 2;     // what a matrix product is computed in
  bool autocast = false;  // weights or the stream are wider than the products: inputs are cast at every layer
};

Precision precision_of(const Request& request);

// Bytes a parameter takes when packed. NF4: 4 bits and one fp32 scale per 64 weights; double quantisation: an
// 8-bit scale per 64 and an fp32 one per 256 of those (Dettmers et al. 2023, QLoRA, section 3). int4: GPTQ
// with groups of 128: an fp16 scale and a 4-bit zero point each (Frantar et al. 2022).
double packed_bytes(WeightType weights);

}  // namespace batchwright::plan
