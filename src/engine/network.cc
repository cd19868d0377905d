#include "engine/network.h"

#include "engine/adapters.h"
#include "engine/families.h"

namespace batchwright::engine {

using profile::Phase;

double Network::forward_backward(const Pass& pass, const Shard& shard, double loss_scale,
                                 profile::PhaseClock* clock) const {
  const ArenaScope whole(pass.arena);
  const auto enter = [&](Phase phase) {
    if (clock != nullptr) clock->enter(phase);
  };
  enter(Phase::Forward);
  const std::unique_ptr<Activations> activations = body_->forward(pass, shard, true);
  enter(Phase::Loss);
  float* d_hidden = pass.arena.floats(shard.wanted_rows().rows() * body_->hidden());
  const double loss = head_->backward(pass, shard, activations->hidden, loss_scale, d_hidden);
  enter(Phase::Backward);
  body_->backward(pass, shard, *activations, d_hidden);
  pass.done(0);
  enter(Phase::Residual);
  return loss;
}

Network::Evaluated Network::evaluate(const Pass& pass, const Shard& shard, bool with_logits) const {
  const std::unique_ptr<Activations> activations = body_->forward(pass, shard, false);
  Evaluated result;
  result.loss = head_->loss(pass, shard, activations->hidden);
  if (with_logits) result.logits = head_->logits(pass, shard, activations->hidden);
  return result;
}

std::unique_ptr<Network> make_network(const model::ModelConfig& config, const run::TrainingOptions& options,
                                      data::Task task, std::int64_t classes, Parameters& parameters) {
  std::unique_ptr<Body> body = make_body(config, options, parameters);
  std::unique_ptr<Head> head = make_head(config, options, task, classes, body->word_embeddings(), parameters);
  if (options.method == run::Method::Lora) {
    const auto wrapped = wrapped_module_names(config, head_of(task), options);
    body->add_adapters(parameters, wrapped, options.lora);
    head->add_adapters(parameters, wrapped, options.lora);
  }
  return std::make_unique<Network>(std::move(body), std::move(head));
}

}  // namespace batchwright::engine
