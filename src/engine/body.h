#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/linear.h"
#include "engine/parameters.h"
#include "engine/token_batch.h"
#include "run/options.h"

namespace batchwright::engine {

// What a forward pass leaves in the arena: the head's input and, when asked to, all that backward reads.
// Every family derives its own.
struct Activations {
  virtual ~Activations() = default;
  const float* hidden = nullptr;  // the last layer's output (final norm included): [wanted rows, hidden]
};

// A Transformer without its head: embeddings and layers, from a shard's tokens to the hidden states of the
// rows that the head wants. Holds no weights (Parameters does) and no activations (the arena does), so
// threads share one object. The constructor of a family declares its weights, in Hugging Face's names.
class Body {
 public:
  virtual ~Body() = default;

  // Declares low-rank adapters beside those linear layers whose modules are in `wrapped_modules`.
  virtual void add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                            const run::LoraOptions& options) = 0;

  // keep: hold what backward needs; otherwise a layer's memory is free again after it. What is returned is
  // valid until the arena is released to where it was.
  virtual std::unique_ptr<Activations> forward(const Pass& pass, const Shard& shard, bool keep) const = 0;

  // Adds the gradients of the body's weights, given d_hidden, the gradient of `hidden`. Once a forward. Says
  // pass.done(part) after every layer.
  virtual void backward(const Pass& pass, const Shard& shard, Activations& activations,
                        const float* d_hidden) const = 0;

  // The part of the model (Parameters) that a layer is: 0 are the embeddings; the head, declared after the
  // body, belongs to the last layer, whose backward follows its own.
  static std::int64_t part_of(std::int64_t layer) { return layer + 1; }

  virtual std::int64_t hidden() const = 0;  // width of a row

  // [vocabulary, hidden]: a language model's head may be tied to it.
  virtual ParameterId word_embeddings() const = 0;
};

}  // namespace batchwright::engine
