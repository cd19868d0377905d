#include <algorithm>

#include "plan/block_parts.h"

namespace batchwright::plan {
namespace {

using model::Architecture;

// Softmax of scores in fp32: what every family but the oldest writes, and what autocast does to all.
bool fp32_softmax(const Block& b) { return !layer_norm(b.shape.config.architecture) || b.p.autocast; }

}  // namespace

double scores_saved(const Block& b) {
  if (b.request.attention != Attention::Eager) return 0;
  const double type = b.p.product;
  const bool drops = b.shape.config.attention_dropout > 0, wide = fp32_softmax(b);
  double bytes = wide ? 4 : type;
  if (drops) bytes += kMask;
  if (drops || (wide && type < 4)) bytes += type;
  return bytes * b.heads() * static_cast<double>(b.request.longest());
}

double attention_saved(const Block& b) {
  const double type = b.p.product;  // the kernels take 16-bit inputs under autocast
  const bool eager = b.request.attention == Attention::Eager;
  const bool repeats =
      b.request.attention == Attention::Sdpa && b.request.framework == Framework::Transformers;
  const double keys = repeats || eager ? b.queries() : b.keys();
  const double saved = type * (b.queries() + 2 * keys);
  if (!eager) return saved + type * b.queries() + 4 * b.heads();         // the output and the log of the sums
  return saved + scores_saved(b) + (b.full() ? type * b.queries() : 0);  // the output projection's input
}

double fused_projection_saved(const Block& b) {
  const Architecture a = b.shape.config.architecture;
  const bool rotary = a != Architecture::Gpt2 && a != Architecture::GptBigCode && a != Architecture::Bloom &&
                      a != Architecture::Mpt;
  const bool fused = b.litgpt() || std::any_of(b.shape.block.begin(), b.shape.block.end(),
                                               [](const LinearShape& l) { return l.role == Role::FusedQkv; });
  const bool eager = b.request.attention == Attention::Eager;  // products copy the slice
  return fused && rotary && !eager ? b.p.activation * (b.queries() + b.keys()) : 0;
}

double qk_norm_saved(const Block& b) {
  const Architecture a = b.shape.config.architecture;
  if (a != Architecture::Qwen3 && a != Architecture::Qwen3Moe && a != Architecture::Gemma3 &&
      a != Architecture::Olmo2)
    return 0;
  const double width = b.queries() + b.keys();
  return 4 * width + (b.full() ? b.p.activation * width : 0);
}

double attention_backward(const Block& b) {
  const double square = b.heads() * static_cast<double>(b.request.longest());
  const double probabilities = b.p.autocast ? 10 : b.p.product + 4;
  return b.request.attention == Attention::Eager ? probabilities * square
                                                 : (2 * b.p.product + 4) * b.queries();
}

}  // namespace batchwright::plan
