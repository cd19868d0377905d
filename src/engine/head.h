#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/task.h"
#include "engine/linear.h"
#include "engine/parameters.h"
#include "engine/token_batch.h"
#include "model/config.h"
#include "model/parameters.h"
#include "run/options.h"

namespace batchwright::engine {

// What stands on a body: from the hidden states of the wanted rows, `hidden` [wanted rows, hidden], to losses
// and their gradients. Like Body, it holds neither weights nor activations.
class Head {
 public:
  virtual ~Head() = default;

  // The rows that it reads: decides what a shard's `wanted` and `targets` are.
  virtual WantedRows wants() const = 0;

  virtual void add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                            const run::LoraOptions& options) = 0;

  // Adds the gradients of the head's weights, of loss_scale * the sum of the shard's losses, and writes that
  // of its input to d_hidden [wanted rows, hidden]. Returns the unscaled sum.
  virtual double backward(const Pass& pass, const Shard& shard, const float* hidden, double loss_scale,
                          float* d_hidden) const = 0;

  // The sum of losses alone.
  virtual double loss(const Pass& pass, const Shard& shard, const float* hidden) const = 0;

  // Logits [wanted rows, width()], in arena memory, valid until the arena is released.
  virtual const float* logits(const Pass& pass, const Shard& shard, const float* hidden) const = 0;
  virtual std::int64_t width() const = 0;
};

model::Head head_of(data::Task task);

// The modules of a task's head, as Transformers names them; BERT's pooler is one when it is built with it.
std::vector<model::Module> head_modules(const model::ModelConfig& config, data::Task task,
                                        std::int64_t classes);

// The head for a task, as Transformers builds it for this family. Declares its parameters. Throws
// Error(Unsupported) for a family that has none.
std::unique_ptr<Head> make_head(const model::ModelConfig& config, const run::TrainingOptions& options,
                                data::Task task, std::int64_t classes, ParameterId word_embeddings,
                                Parameters& parameters);

}  // namespace batchwright::engine
