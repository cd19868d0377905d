// What the engine's decoders take from an arena: engine/decoder.cc, decoder_backward.cc, linear.cc and the
// heads, step by step in their order.
#include <algorithm>
#include <cmath>

#include "plan/native_arena.h"

namespace batchwright::plan {
namespace {

using model::Architecture;

// A bump allocator without memory, in floats.
class Tally {
 public:
  void take(double floats) {
    used_ += floats;
    peak_ = std::max(peak_, used_);
  }
  void take_briefly(double floats) { peak_ = std::max(peak_, used_ + floats); }
  double used() const { return used_; }
  double peak() const { return peak_; }
  void release_to(double mark) { used_ = mark; }

 private:
  double used_ = 0, peak_ = 0;
};

class Scope {
 public:
  explicit Scope(Tally& tally) : tally_(tally), mark_(tally.used()) {}
  ~Scope() { tally_.release_to(mark_); }
  Scope(const Scope&) = delete;

 private:
  Tally& tally_;
  double mark_;
};

class DecoderPass {
 public:
  DecoderPass(const ModelShape& shape, const Request& request, double examples)
      : shape_(shape),
        request_(request),
        h_(static_cast<double>(shape.config.hidden)),
        inner_(static_cast<double>(shape.config.intermediate)),
        queries_(static_cast<double>(shape.query_width())),
        keys_(static_cast<double>(shape.key_width())),
        length_(static_cast<double>(request.longest())),
        examples_(examples),
        rows_(examples * length_),
        // A language model predicts all tokens but the first, a classifier reads the last row of each
        // example.
        wanted_(language_model() ? examples * (length_ - 1) : examples) {}

  NativeArena arena() {
    take_scratch();
    const double before = tally_.used();
    forward();
    const double kept = tally_.used() - before;
    tally_.take(wanted_ * h_);  // the gradient of the hidden states
    tally_.take_briefly(head());
    backward();
    return {.kept = kept, .temporary = tally_.peak() - kept};
  }

 private:
  bool language_model() const { return shape_.head == model::Head::CausalLm; }
  bool full() const { return request_.trains_all(); }
  bool drops() const { return shape_.config.hidden_dropout > 0; }
  bool rotary() const { return shape_.config.architecture != Architecture::Gpt2; }
  bool norms_heads() const { return shape_.config.architecture == Architecture::Qwen3; }
  bool gated() const { return rotary(); }
  bool selective() const { return request_.checkpointing == Checkpointing::Selective; }
  bool again() const { return request_.checkpointing == Checkpointing::Full; }
  double wide() const { return gated() ? 2 * inner_ : inner_; }
  double stride() const { return queries_ + 2 * keys_; }
  double rank() const { return static_cast<double>(request_.lora_rank); }

  int adapters(std::initializer_list<Role> roles) const {
    return static_cast<int>(
        std::count_if(shape_.block.begin(), shape_.block.end(), [&](const LinearShape& l) {
          return l.lora && std::find(roles.begin(), roles.end(), l.role) != roles.end();
        }));
  }
  int projections() const { return adapters({Role::Query, Role::Key, Role::Value, Role::FusedQkv}); }
  int outputs() const { return adapters({Role::AttentionOutput}); }
  int ups() const { return adapters({Role::Gate, Role::Up}); }
  int downs() const { return adapters({Role::Down}); }

  void linear_forward(double rows, double in, int adapters) {
    for (int i = 0; i < adapters; ++i) {
      if (kAdapterDropout > 0) tally_.take(rows * mask_words(in));
      tally_.take(rows * rank());
      if (kAdapterDropout > 0) tally_.take_briefly(rows * in);
    }
  }
  void linear_backward(double rows, double in, int adapters) {
    if (adapters > 0) tally_.take_briefly(rows * (rank() + (kAdapterDropout > 0 ? in : 0)));
  }
  void mask(double rows) {
    if (drops()) tally_.take(rows * mask_words(h_));
  }

  void take_scratch() {
    tally_.take(3 * rows_ * h_ + wanted_ * h_ + rows_ * inner_);
    if (selective()) tally_.take(rows_ * wide());
    if (norms_heads()) tally_.take(rows_ * (queries_ + keys_));
    if (rotary()) tally_.take(length_ * static_cast<double>(shape_.config.head_dim));
    tally_.take(attention_scratch(shape_, request_));
  }

  void layer_forward(bool last) {
    const double out = last ? wanted_ : rows_, heads = static_cast<double>(shape_.config.heads);
    const bool all_ask = !last || language_model();
    tally_.take(rows_ * (h_ + 1));
    tally_.take(rows_ * stride());
    linear_forward(rows_, h_, projections());
    if (norms_heads()) tally_.take(rows_ * (heads + static_cast<double>(shape_.config.kv_heads)));
    tally_.take((all_ask ? rows_ : out) * heads + out * queries_);
    if (last && all_ask) tally_.take_briefly(rows_ * queries_);
    mask(out);
    linear_forward(out, queries_, outputs());
    tally_.take(out * (h_ + 1));
    if (!selective()) tally_.take(out * wide());
    linear_forward(out, h_, ups());
    linear_forward(out, inner_, downs());
    mask(out);
  }

  void forward() {
    const auto layers = shape_.config.layers;
    if (again()) tally_.take(rows_ * h_);
    mask(rows_);  // of the embeddings
    for (std::int64_t i = 0; i < layers; ++i) {
      const bool last = i + 1 == layers;
      if (again() && !last) tally_.take(rows_ * h_);
      const double mark = tally_.used();
      layer_forward(last);
      if (again()) tally_.release_to(mark);
    }
    tally_.take(wanted_ * (2 * h_ + 1));  // the final norm
  }

  double head() const {
    if (!language_model()) return examples_ * static_cast<double>(shape_.config.num_labels.value_or(2));
    constexpr double kChunkFloats = 4.0 * 1048576;  // engine/language_model_head.h
    const auto vocabulary = static_cast<double>(shape_.config.vocabulary);
    return std::min(wanted_, std::max(16.0, std::floor(kChunkFloats / vocabulary))) * vocabulary;
  }

  void mlp_backward(double out) {
    const Scope scope(tally_);
    if (drops()) tally_.take(out * h_);
    if (selective() || full() || ups() > 0) tally_.take(out * h_);
    if (selective()) {
      const Scope inner(tally_);
      linear_forward(out, h_, ups());
    }
    tally_.take(out * inner_);
    linear_backward(out, inner_, downs());
    linear_backward(out, h_, ups());
  }

  void attention_backward(bool last, double out) {
    const Scope scope(tally_);
    tally_.take(rows_ * stride());
    {
      const Scope inner(tally_);
      if (drops()) tally_.take(out * h_);
      tally_.take(out * queries_);
      linear_backward(out, queries_, outputs());
      if (last && language_model()) tally_.take(rows_ * queries_);
      tally_.take(attention_scratch(shape_, request_));
    }
    if (full() || projections() > 0) tally_.take(rows_ * h_);
    linear_backward(rows_, h_, projections());
  }

  void backward() {
    if (again()) tally_.take(rows_ * h_);
    tally_.take(wanted_ * h_);
    for (std::int64_t i = shape_.config.layers; i-- > 0;) {
      const Scope layer(tally_);
      const bool last = i + 1 == shape_.config.layers;
      const double out = last ? wanted_ : rows_;
      if (again()) layer_forward(last);
      tally_.take(out * h_);
      mlp_backward(out);
      attention_backward(last, out);
    }
  }

  const ModelShape& shape_;
  const Request& request_;
  double h_, inner_, queries_, keys_, length_, examples_, rows_, wanted_;
  Tally tally_;
};

}  // namespace

NativeArena decoder_arena(const ModelShape& shape, const Request& request, double examples) {
  return DecoderPass(shape, request, examples).arena();
}

}  // namespace batchwright::plan
