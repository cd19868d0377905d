#pragma once

#include <cmath>

#include "plan/request.h"
#include "plan/shape.h"

// One thread's arena of batchwright-engine, in floats: what native_memory.cc (encoders) and native_decoder.cc
// share.
namespace batchwright::plan {

inline constexpr double kAdapterDropout = 0.05;  // the engine's default: adapters then keep a mask

inline double mask_words(double columns) { return std::ceil(columns / 32); }

struct NativeArena {
  double kept = 0, temporary = 0;
};

// As the attention kernels take it (engine/kernels_attention.inc): blocks of 48 queries.
double attention_scratch(const ModelShape& shape, const Request& request);

// One pass over `examples` sequences of the request's longest length.
NativeArena decoder_arena(const ModelShape& shape, const Request& request, double examples);

}  // namespace batchwright::plan
