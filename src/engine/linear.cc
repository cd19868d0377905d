#include "engine/linear.h"

#include <cmath>

#include "base/error.h"

namespace batchwright::engine {
namespace {

std::int64_t mask_words(std::int64_t rows, std::int64_t cols) { return rows * ((cols + 31) / 32); }

// The adapter's input: x itself, or its dropped-out copy in the arena.
const float* adapter_input(const Pass& pass, const Adapter& adapter, const float* x,
                           const std::uint32_t* mask, std::int64_t rows, std::int64_t cols) {
  if (mask == nullptr) return x;
  float* dropped = pass.arena.floats(rows * cols);
  pass.ops.dropout_apply(x, mask, keep_scale(adapter.threshold), rows, cols, dropped);
  return dropped;
}

}  // namespace

Checkpointing parse_checkpointing(const std::string& name) {
  if (name == "none") return Checkpointing::None;
  if (name == "selective") return Checkpointing::Selective;
  if (name == "full") return Checkpointing::Full;
  throw Error(ErrorKind::Usage, "--checkpointing", "'" + name + "' is not known",
              "Choose none, selective or full");
}

std::string checkpointing_name(Checkpointing checkpointing) {
  switch (checkpointing) {
    case Checkpointing::None:
      return "none";
    case Checkpointing::Selective:
      return "selective";
    case Checkpointing::Full:
      return "full";
  }
  return "none";
}

std::uint32_t dropout_threshold(double p) { return static_cast<std::uint32_t>(std::lround(p * 65536)); }

DropoutKey dropout_key(const Pass& pass, std::int64_t layer, Site site, std::uint32_t threshold) {
  return {.seed = pass.seed,
          .step = pass.step,
          .layer_and_site = static_cast<std::uint32_t>(layer) << 16 | static_cast<std::uint32_t>(site) << 24,
          .threshold = pass.training ? threshold : 0};
}

LinearSaved Linear::forward(const Pass& pass, const TokenBatch& batch, const float* x, float* y) const {
  const std::int64_t rows = batch.rows();
  pass.ops.gemm({.transpose_b = !transposed,
                 .m = rows,
                 .n = out,
                 .k = in,
                 .a = x,
                 .lda = in,
                 .b = weight(pass.parameters),
                 .ldb = transposed ? out : in,
                 .c = y,
                 .ldc = out});
  LinearSaved saved;
  for (const Adapter& adapter : adapters) {
    const DropoutKey key = dropout_key(pass, layer, adapter.site, adapter.threshold);
    std::uint32_t* mask = nullptr;
    if (key.threshold != 0) {
      mask = pass.arena.words(mask_words(rows, in));
      pass.ops.dropout_bits(key, batch, in, mask);
    }
    float* u = pass.arena.floats(rows * adapter.rank);
    {
      const ArenaScope scratch(pass.arena);
      const float* dropped = adapter_input(pass, adapter, x, mask, rows, in);
      pass.ops.gemm({.transpose_b = true,
                     .m = rows,
                     .n = adapter.rank,
                     .k = in,
                     .a = dropped,
                     .lda = in,
                     .b = pass.parameters.value(adapter.a),
                     .ldb = in,
                     .c = u,
                     .ldc = adapter.rank});
    }
    pass.ops.gemm({.transpose_b = true,
                   .m = rows,
                   .n = adapter.out,
                   .k = adapter.rank,
                   .alpha = adapter.scale,
                   .a = u,
                   .lda = adapter.rank,
                   .b = pass.parameters.value(adapter.b),
                   .ldb = adapter.rank,
                   .beta = 1,
                   .c = y + adapter.out_begin,
                   .ldc = out});
    saved.masks.push_back(mask);
    saved.u.push_back(u);
  }
  return saved;
}

void Linear::backward(const Pass& pass, const TokenBatch& batch, const float* x, const float* dy,
                      const LinearSaved& saved, float* dx) const {
  const Parameters& p = pass.parameters;
  const std::int64_t rows = batch.rows();
  if (trains_weight(p)) {
    // dW = dy^T x, or its transpose.
    pass.ops.gemm({.transpose_a = true,
                   .m = transposed ? in : out,
                   .n = transposed ? out : in,
                   .k = rows,
                   .a = transposed ? x : dy,
                   .lda = transposed ? in : out,
                   .b = transposed ? dy : x,
                   .ldb = transposed ? out : in,
                   .beta = 1,
                   .c = p.gradient(weights.front(), pass.gradients),
                   .ldc = transposed ? out : in});
    if (!biases.empty()) pass.ops.column_sums(dy, rows, out, p.gradient(biases.front(), pass.gradients));
  }
  if (dx != nullptr) {
    pass.ops.gemm({.transpose_b = transposed,
                   .m = rows,
                   .n = in,
                   .k = out,
                   .a = dy,
                   .lda = out,
                   .b = weight(p),
                   .ldb = transposed ? out : in,
                   .c = dx,
                   .ldc = in});
  }
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const Adapter& adapter = adapters[i];
    const ArenaScope scratch(pass.arena);
    const float* dy_part = dy + adapter.out_begin;
    float* du = pass.arena.floats(rows * adapter.rank);
    pass.ops.gemm({.m = rows,
                   .n = adapter.rank,
                   .k = adapter.out,
                   .alpha = adapter.scale,
                   .a = dy_part,
                   .lda = out,
                   .b = p.value(adapter.b),
                   .ldb = adapter.rank,
                   .c = du,
                   .ldc = adapter.rank});
    pass.ops.gemm({.transpose_a = true,
                   .m = adapter.out,
                   .n = adapter.rank,
                   .k = rows,
                   .alpha = adapter.scale,
                   .a = dy_part,
                   .lda = out,
                   .b = saved.u[i],
                   .ldb = adapter.rank,
                   .beta = 1,
                   .c = p.gradient(adapter.b, pass.gradients),
                   .ldc = adapter.rank});
    const std::int64_t mark = pass.arena.mark();
    const float* dropped = adapter_input(pass, adapter, x, saved.masks[i], rows, in);
    pass.ops.gemm({.transpose_a = true,
                   .m = adapter.rank,
                   .n = in,
                   .k = rows,
                   .a = du,
                   .lda = adapter.rank,
                   .b = dropped,
                   .ldb = in,
                   .beta = 1,
                   .c = p.gradient(adapter.a, pass.gradients),
                   .ldc = in});
    if (dx == nullptr) continue;
    if (saved.masks[i] == nullptr) {
      pass.ops.gemm({.m = rows,
                     .n = in,
                     .k = adapter.rank,
                     .a = du,
                     .lda = adapter.rank,
                     .b = p.value(adapter.a),
                     .ldb = in,
                     .beta = 1,
                     .c = dx,
                     .ldc = in});
      continue;
    }
    pass.arena.release_to(mark);
    float* through_mask = pass.arena.floats(rows * in);
    pass.ops.gemm({.m = rows,
                   .n = in,
                   .k = adapter.rank,
                   .a = du,
                   .lda = adapter.rank,
                   .b = p.value(adapter.a),
                   .ldb = in,
                   .c = through_mask,
                   .ldc = in});
    pass.ops.dropout_add(through_mask, saved.masks[i], keep_scale(adapter.threshold), rows, in, dx);
  }
}

}  // namespace batchwright::engine
