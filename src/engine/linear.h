#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "engine/ops.h"
#include "engine/parameters.h"
#include "run/options.h"

namespace batchwright::engine {

// What backward keeps in memory, and what it computes again from what was kept, with the same dropout.
enum class Checkpointing {
  None,       // everything that backward reads
  Selective,  // all but the widest activation of each layer (the MLP's), for one more product a layer
  Full,       // each layer's input only, for a second forward
};
Checkpointing parse_checkpointing(const std::string& name);  // "none", "selective", "full"; throws Usage
std::string checkpointing_name(Checkpointing checkpointing);

// What a forward or backward pass needs to know beside the data.
struct Pass {
  Ops& ops;
  Arena& arena;
  const Parameters& parameters;
  float* gradients = nullptr;  // this thread's block of trainable_count() floats; accumulated into
  bool training = false;       // dropout is on
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  Checkpointing checkpointing = Checkpointing::None;
  // Told when this thread's gradients of a part of the model are final; set for the last micro-batch only.
  const std::function<void(std::int64_t)>* part_done = nullptr;

  void done(std::int64_t part) const {
    if (part_done != nullptr) (*part_done)(part);
  }
};

// Dropout sites of one layer; with the layer's number they key the masks (DropoutKey).
enum class Site : std::uint32_t {
  Embedding = 1,
  AttentionProbabilities,
  AttentionOutput,
  MlpOutput,
  HeadInput,
  HeadDense,
  LoraQuery = 16,
  LoraKey,
  LoraValue,
  LoraAttentionOutput,
  LoraIntermediate,
  LoraMlpOutput,
  LoraPooler,
  LoraUp,
};

// threshold of DropoutKey for probability p in [0, 1).
std::uint32_t dropout_threshold(double p);
DropoutKey dropout_key(const Pass& pass, std::int64_t layer, Site site, std::uint32_t threshold);
inline float keep_scale(std::uint32_t threshold) { return 65536.0f / static_cast<float>(65536 - threshold); }

// One low-rank adapter (Hu et al. 2021) on rows [out_begin, out_begin + out) of a linear layer:
// y += alpha / rank * dropout(x) A^T B^T, A [rank, in], B [out, rank], as PEFT.
struct Adapter {
  ParameterId a = 0, b = 0;
  std::int64_t rank = 0, out_begin = 0, out = 0;
  float scale = 1;
  std::uint32_t threshold = 0;
  Site site = Site::LoraQuery;
};

// What Linear::forward keeps for backward: per adapter the mask and u = dropout(x) A^T. The input itself is
// the caller's, who often can recompute it.
struct LinearSaved {
  std::vector<std::uint32_t*> masks;
  std::vector<float*> u;
};

// y = x W^T (+ adapters), W [out, in], or [in, out] when transposed (GPT-2's Conv1D). The bias is not added
// here: the operation that follows does it in the same pass over memory. Several projections of one input (q,
// k, v) are one Linear with adjacent weights.
struct Linear {
  std::vector<ParameterId> weights, biases;  // adjacent in memory, in row order; biases may be empty
  std::int64_t in = 0, out = 0;
  std::int64_t layer = 0;
  std::vector<Adapter> adapters;
  bool transposed = false;

  const float* weight(const Parameters& p) const { return p.value(weights.front()); }
  // nullptr when there is none
  const float* bias(const Parameters& p) const { return biases.empty() ? nullptr : p.value(biases.front()); }
  bool trains_weight(const Parameters& p) const { return p.at(weights.front()).trainable; }

  // x is [batch.rows(), in]; the batch keys the dropout rows.
  LinearSaved forward(const Pass& pass, const TokenBatch& batch, const float* x, float* y) const;
  // Accumulates weight, bias and adapter gradients; writes dx [rows, in] unless it is nullptr.
  void backward(const Pass& pass, const TokenBatch& batch, const float* x, const float* dy,
                const LinearSaved& saved, float* dx) const;
  bool needs_input(const Parameters& p) const { return trains_weight(p) || !adapters.empty(); }
};

}  // namespace batchwright::engine
