// No include guard on purpose: each kernels_<isa>.cc defines BATCHWRIGHT_ISA and includes this once, compiled
// with that instruction set's flags. Everything is inside namespace batchwright::engine::BATCHWRIGHT_ISA, so
// nothing compiled for a wider instruction set can be picked by the linker for a narrower one.

#include <cmath>
#include <cstring>

#include "engine/kernels.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace batchwright::engine::BATCHWRIGHT_ISA {
namespace {

// The parts, in reading order: each uses those above it.
// clang-format off
#include "engine/vector.inc"
#include "engine/kernels_dropout.inc"
#include "engine/kernels_norm.inc"
#include "engine/kernels_activation.inc"
#include "engine/kernels_pointwise.inc"
#include "engine/kernels_attention.inc"
#include "engine/kernels_loss.inc"
// clang-format on

}  // namespace

const Kernels& table() {
  static const Kernels kernels = {.name = BATCHWRIGHT_ISA_NAME,
                                  .dropout_bits = dropout_bits,
                                  .attention_dropout_bits = attention_dropout_bits,
                                  .dropout_apply = dropout_apply,
                                  .dropout_add = dropout_add,
                                  .residual_norm_forward = residual_norm_forward,
                                  .norm_backward = norm_backward,
                                  .scale_shift = scale_shift,
                                  .rotate = rotate,
                                  .bias_activation_forward = bias_activation_forward,
                                  .activation_forward = activation_forward,
                                  .activation_backward = activation_backward,
                                  .swiglu_forward = swiglu_forward,
                                  .swiglu_backward = swiglu_backward,
                                  .column_sums = column_sums,
                                  .add = add,
                                  .attention_scratch = attention_scratch,
                                  .attention_forward = attention_forward,
                                  .attention_backward = attention_backward,
                                  .cross_entropy = cross_entropy,
                                  .sum_of_squares = sum_of_squares,
                                  .adamw = adamw};
  return kernels;
}

}  // namespace batchwright::engine::BATCHWRIGHT_ISA
