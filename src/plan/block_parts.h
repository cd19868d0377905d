#pragma once

#include "plan/precision.h"
#include "plan/request.h"
#include "plan/shape.h"

// What block_memory.cc, attention_memory.cc and loss_memory.cc share; nothing else includes it.
namespace batchwright::plan {

inline constexpr double kMask = 1;  // a dropout mask is one byte an element

// What the block's pieces need to know in one place.
struct Block {
  const ModelShape& shape;
  const Request& request;
  const Precision& p;

  double hidden() const { return static_cast<double>(shape.config.hidden); }
  double intermediate() const { return static_cast<double>(shape.config.intermediate); }
  double queries() const { return static_cast<double>(shape.query_width()); }
  double keys() const { return static_cast<double>(shape.key_width()); }
  double heads() const { return static_cast<double>(shape.config.heads); }
  bool full() const { return request.trains_all(); }
  bool dropout() const { return shape.config.hidden_dropout > 0; }
  bool litgpt() const { return request.framework == Framework::LitGpt; }
  // bitsandbytes kept the input of every 4-bit layer until 0.43.2 ("activations being unnecessary for frozen
  // parameters", its release notes of 2024); LitGPT's releases stand on earlier ones.
  bool keeps_packed_inputs() const { return request.method == Method::Qlora && litgpt(); }
  // Adapters compute in 16 bits under autocast: what every Trainer run with bf16 or fp16 does.
  bool casts_adapters() const {
    return p.product < 4 && (p.autocast || request.framework == Framework::Transformers);
  }
};

bool layer_norm(model::Architecture a);

// LayerNorm keeps its input. RMSNorm, written in Python, keeps an fp32 copy of it, and the normalised states
// where its weight is trained; the fp32 stream itself serves as the copy.
double norm_saved(const Block& b, double width);

// Of attention, in bytes a token: the probabilities (heads x sequence of them, with eager attention), and
// what its kernels keep, those included.
double scores_saved(const Block& b);
double attention_saved(const Block& b);

// A fused projection's output stays whole as long as its value slice is needed, beside the rotated queries
// and keys.
double fused_projection_saved(const Block& b);
double qk_norm_saved(const Block& b);

// Gradients while attention's backward pass runs.
double attention_backward(const Block& b);

}  // namespace batchwright::plan
