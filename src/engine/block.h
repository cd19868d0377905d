#pragma once

#include <cstdint>

#include "engine/declare.h"
#include "engine/token_batch.h"

// What the blocks of encoders and decoders share.
namespace batchwright::engine {

// Kept from a norm's forward for its backward; in the arena, [rows, width], [rows], and the mask of the
// dropout in front of it.
struct NormSaved {
  float *normalized = nullptr, *inverse_std = nullptr;
  std::uint32_t* mask = nullptr;
};

// gamma * normalized + beta again, into the arena: what follows a norm is not kept.
const float* norm_output(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                         std::int64_t cols);

// The mask of a dropout over [batch.rows(), cols], in the arena; nullptr when nothing is dropped.
std::uint32_t* draw_mask(const Pass& pass, const DropoutKey& key, const TokenBatch& batch, std::int64_t cols);

// d through a dropout: d itself without a mask, else a copy in the arena.
const float* through_dropout(const Pass& pass, const std::uint32_t* mask, std::uint32_t threshold,
                             std::int64_t rows, std::int64_t cols, const float* d);

// Attention of one layer. `at_wanted_rows`: only the context of the shard's wanted rows is needed (the last
// layer). When each sequence wants one row, only that row asks; otherwise all ask and the wanted rows are
// taken.
struct AttentionSaved {
  float *context = nullptr, *lse = nullptr;
};
// Sets attention.one_query when that serves.
void ask_wanted_rows(const Shard& shard, bool at_wanted_rows, Attention& attention);
AttentionSaved attention_forward(const Pass& pass, const Shard& shard, const Attention& attention,
                                 bool at_wanted_rows, float* scratch);
void attention_backward(const Pass& pass, const Shard& shard, const Attention& attention, bool at_wanted_rows,
                        const float* lse, const float* d_context, const AttentionGradient& gradient);

}  // namespace batchwright::engine
