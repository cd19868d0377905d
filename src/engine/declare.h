#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/linear.h"
#include "engine/parameters.h"
#include "model/parameters.h"
#include "run/options.h"

namespace batchwright::engine {

// gamma, and beta where the family has one, [width].
struct Norm {
  ParameterId gamma = 0;
  std::optional<ParameterId> beta;

  const float* beta_value(const Parameters& p) const { return beta ? p.value(*beta) : nullptr; }
  float* beta_gradient(const Parameters& p, float* block) const {
    return beta ? p.gradient(*beta, block) : nullptr;
  }
};

// Whether the module, or one that holds it, has a name that ends in `wanted`: how PEFT finds modules_to_save
// ("norm" is also "q_norm" there).
bool ends_as(std::string_view module, const std::string& wanted);

// Whether the module's own weights train: all of them in full fine-tuning; in LoRA the head and what the
// options name beside it.
bool trains_in_full(const model::Module& module, const run::TrainingOptions& options);

// Turns a model's modules (model/parameters.h) into declared weights, trainable or frozen as the method asks:
// in LoRA only the head and the modules that the options name train in full.
class Declaration {
 public:
  Declaration(std::vector<model::Module> modules, const run::TrainingOptions& options, Parameters& parameters)
      : modules_(std::move(modules)), options_(options), parameters_(parameters) {}

  // The module with this role in this layer (-1: outside of layers); nullptr when the family has none.
  const model::Module* find(model::Role role, std::int64_t layer = -1) const;

  // All of them must be there. Several roles are one Linear: projections of one input, in this order. Throws
  // Error(Unsupported) when only some of them train.
  Linear linear(const std::vector<model::Role>& roles, std::int64_t layer) const;
  Linear linear(const std::vector<const model::Module*>& modules, std::int64_t layer) const;
  Norm norm(model::Role role, std::int64_t layer = -1) const;
  ParameterId embedding(model::Role role) const;

 private:
  const model::Module& need(model::Role role, std::int64_t layer) const;

  std::vector<model::Module> modules_;
  const run::TrainingOptions& options_;
  Parameters& parameters_;
};

}  // namespace batchwright::engine
