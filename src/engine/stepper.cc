#include "engine/stepper.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

#include "data/metric.h"

namespace batchwright::engine {
namespace {

using Clock = std::chrono::steady_clock;
using profile::Phase;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

Stepper::Stepper(LoadedModel& model, const data::TokenFile& tokens, const run::TrainingOptions& options)
    : model_(model),
      tokens_(tokens),
      options_(options),
      ops_(*model.ops),
      workers_(ops_.most_threads() > 0 ? ops_.most_threads() : options.threads),
      optimizer_(model.parameters, options, ops_) {
  for (int i = 0; i < workers_.size(); ++i) {
    lanes_.push_back(std::make_unique<Lane>(ops_.device()));
    lanes_.back()->gradients = Buffer(model.parameters.trainable_count() * 4, false, ops_.device());
  }
}

Pass Stepper::pass_of(Lane& lane, bool training, std::int64_t step, Checkpointing checkpointing) {
  return {.ops = ops_,
          .arena = lane.arena,
          .parameters = model_.parameters,
          .gradients = lane.gradients.floats(),
          .training = training,
          .seed = options_.seed,
          .step = static_cast<std::uint32_t>(step),
          .checkpointing = checkpointing};
}

void Stepper::reserve(const WindowPlan& plan, Work work, Checkpointing checkpointing) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = *lanes_[i];
    Arena counted;
    std::int64_t most = 0;
    for (const Shard& shard : plan.shards[i]) {
      counted.start_counting();
      const Pass pass{.ops = counting_,
                      .arena = counted,
                      .parameters = model_.parameters,
                      .gradients = lane.gradients.floats(),
                      .training = work == Work::Train,
                      .seed = 0,
                      .step = 0,
                      .checkpointing = checkpointing};
      if (work == Work::Train)
        model_.network->forward_backward(pass, shard, 1, nullptr);
      else
        model_.network->evaluate(pass, shard, work == Work::LossAndLogits);
      most = std::max(most, counted.counted_bytes());
    }
    lane.arena.reserve(most);
  }
}

StepOutcome Stepper::accumulate(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step) {
  const auto start = Clock::now();
  const WindowPlan plan = plan_window(tokens_, rows, cut, workers_.size(), model_.network->wants(),
                                      model_.config.pad_token_id.value_or(-1));
  reserve(plan, Work::Train, cut.checkpointing);
  const double input_seconds = seconds_since(start);
  const double loss_scale = 1.0 / static_cast<double>(std::max<std::int64_t>(plan.targets, 1));
  workers_.run([&](int thread) {
    Lane& lane = *lanes_[static_cast<std::size_t>(thread)];
    lane.clock.start();
    lane.loss = 0;
    ops_.zero(lane.gradients.floats(), model_.parameters.trainable_count());
    const Pass pass = pass_of(lane, true, step, cut.checkpointing);
    for (const Shard& shard : plan.shards[static_cast<std::size_t>(thread)]) {
      lane.loss += model_.network->forward_backward(pass, shard, loss_scale, &lane.clock);
    }
    lane.phases = lane.clock.stop();
  });
  StepOutcome outcome{.micro_steps = plan.micro_steps,
                      .examples = plan.examples,
                      .real_tokens = plan.real_tokens,
                      .padded_tokens = plan.padded_tokens};
  for (const auto& lane : lanes_) {
    outcome.loss += lane->loss * loss_scale;
    for (const Phase phase : {Phase::Forward, Phase::Loss, Phase::Backward}) {
      const auto at = static_cast<std::size_t>(phase);
      outcome.phases[at] += lane->phases[at] / static_cast<double>(lanes_.size());
    }
  }
  outcome.phases[static_cast<std::size_t>(Phase::Input)] = input_seconds;
  outcome.seconds = seconds_since(start);
  return outcome;
}

StepOutcome Stepper::step(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step,
                          double learning_rate) {
  const auto start = Clock::now();
  StepOutcome outcome = accumulate(rows, cut, step);
  const auto before = Clock::now();
  std::vector<float*> gradients;
  for (const auto& lane : lanes_) gradients.push_back(lane->gradients.floats());
  outcome.grad_norm = optimizer_.step(workers_, gradients, learning_rate);
  outcome.phases[static_cast<std::size_t>(Phase::Optimizer)] = seconds_since(before);
  const auto end = Clock::now();
  outcome.seconds = std::chrono::duration<double>(end - start).count();
  if (trace_ != nullptr) {
    trace_->add_step(step + 1, start, end);
    const double input = outcome.phases[static_cast<std::size_t>(Phase::Input)];
    trace_->add(0,
                {Phase::Input, start,
                 start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(input))});
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      for (const profile::PhaseSpan& span : lanes_[i]->spans) trace_->add(static_cast<int>(i), span);
      lanes_[i]->spans.clear();
    }
    trace_->add(0, {Phase::Optimizer, before, end});
  }
  double claimed = 0;
  for (const double seconds : outcome.phases) claimed += seconds;
  outcome.phases[static_cast<std::size_t>(Phase::Residual)] = std::max(0.0, outcome.seconds - claimed);
  return outcome;
}

std::vector<float> Stepper::sum_gradients() {
  const std::int64_t count = model_.parameters.trainable_count();
  float* total = lanes_[0]->gradients.floats();
  for (std::size_t i = 1; i < lanes_.size(); ++i) ops_.add(lanes_[i]->gradients.floats(), count, total);
  std::vector<float> host(static_cast<std::size_t>(count));
  ops_.download(total, count, host.data());
  return host;
}

std::vector<std::vector<float>> Stepper::download_logits(const Shard& shard, const float* logits) const {
  const TokenBatch& rows = shard.wanted_rows();
  const std::int64_t width = model_.network->width();
  std::vector<float> all(static_cast<std::size_t>(rows.rows() * width));
  ops_.download(logits, static_cast<std::int64_t>(all.size()), all.data());
  std::vector<std::vector<float>> result;
  for (const Sequence& sequence : rows.sequences) {
    const auto begin = all.begin() + sequence.first_row * width;
    result.emplace_back(begin, begin + sequence.valid * width);
  }
  return result;
}

Evaluation Stepper::evaluate(std::span<const std::uint32_t> rows, const Cut& cut,
                             std::vector<std::vector<float>>* logits) {
  const auto start = Clock::now();
  const WindowPlan plan = plan_window(tokens_, rows, cut, workers_.size(), model_.network->wants(),
                                      model_.config.pad_token_id.value_or(-1));
  const std::unique_ptr<data::Metric> metric = data::make_metric(tokens_);
  const bool with_logits = metric != nullptr || logits != nullptr;
  reserve(plan, with_logits ? Work::LossAndLogits : Work::Loss, Checkpointing::None);
  std::vector<std::int64_t> place(tokens_.rows(), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) place[rows[i]] = static_cast<std::int64_t>(i);
  if (logits != nullptr) logits->assign(rows.size(), {});
  std::vector<double> losses(lanes_.size(), 0);
  std::mutex gathering;
  workers_.run([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    Lane& lane = *lanes_[t];
    const Pass pass = pass_of(lane, false, 0, Checkpointing::None);
    for (const Shard& shard : plan.shards[t]) {
      const ArenaScope scope(lane.arena);
      const Network::Evaluated evaluated = model_.network->evaluate(pass, shard, with_logits);
      losses[t] += evaluated.loss;
      if (!with_logits) continue;
      auto by_sequence = download_logits(shard, evaluated.logits);
      const std::lock_guard lock(gathering);
      for (std::size_t i = 0; i < by_sequence.size(); ++i) {
        const std::uint32_t row = shard.tokens.sequences[i].example;
        if (metric != nullptr) metric->add(row, by_sequence[i]);
        if (logits != nullptr) (*logits)[static_cast<std::size_t>(place[row])] = std::move(by_sequence[i]);
      }
    }
  });
  Evaluation result;
  result.examples = plan.examples;
  result.targets = plan.targets;
  for (const double loss : losses) result.loss += loss;
  result.loss /= static_cast<double>(std::max<std::int64_t>(plan.targets, 1));
  if (metric != nullptr)
    result.metrics = metric->values();
  else
    result.metrics = {{"perplexity", std::exp(result.loss)}};
  result.seconds = seconds_since(start);
  return result;
}

void Stepper::record_into(profile::Trace* trace) {
  trace_ = trace;
  for (const auto& lane : lanes_) {
    lane->spans.clear();
    lane->clock.record_into(trace == nullptr ? nullptr : &lane->spans);
  }
}

void Stepper::release_activations() {
  for (const auto& lane : lanes_) lane->arena.give_back();
}

}  // namespace batchwright::engine
