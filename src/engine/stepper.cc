#include "engine/stepper.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/cores.h"
#include "base/error.h"
#include "data/metric.h"
#include "data/rank_shares.h"
#include "engine/cpu_ops.h"
#include "engine/precision.h"

namespace batchwright::engine {
namespace {

using Clock = std::chrono::steady_clock;
using profile::Phase;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// 0: every core, divided among the processes of this machine.
int threads_of(const Ops& ops, const run::TrainingOptions& options, const ProcessGroup* group) {
  if (ops.most_threads() > 0) return ops.most_threads();
  if (options.threads > 0 || group == nullptr) return options.threads;
  return std::max(1, usable_cores() / group->world().local_size);
}

}  // namespace

Stepper::Stepper(LoadedModel& model, const data::TokenFile& tokens, const run::TrainingOptions& options,
                 ProcessGroup* group)
    : model_(model),
      tokens_(tokens),
      options_(options),
      ops_(*model.ops),
      workers_(threads_of(ops_, options, group), use_one_gemm_thread),  // the team itself shares the work
      group_(group),
      optimizer_(model.parameters, options, ops_) {
  if (parse_precision(options.precision).products == Number::Float16) {
    scaler_ = LossScaler(options.loss_scale, options.loss_scale_interval);
  }
  if (group_ != nullptr) gradient_sum_.emplace(model.parameters, ops_, *group_);
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

std::int64_t Stepper::bytes_for(const Shard& shard, Work work, Checkpointing checkpointing) {
  Arena counted;
  counted.start_counting();
  const Pass pass{.ops = counting_,
                  .arena = counted,
                  .parameters = model_.parameters,
                  .gradients = lanes_.front()->gradients.floats(),
                  .training = work == Work::Train,
                  .seed = 0,
                  .step = 0,
                  .checkpointing = checkpointing};
  if (work == Work::Train)
    model_.network->forward_backward(pass, shard, 1, nullptr);
  else
    model_.network->evaluate(pass, shard, work == Work::LossAndLogits);
  return counted.counted_bytes();
}

void Stepper::reserve(const WindowPlan& plan, Work work, Checkpointing checkpointing) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    std::int64_t most = 0;
    for (const Shard& shard : plan.shards[i]) most = std::max(most, bytes_for(shard, work, checkpointing));
    lanes_[i]->arena.reserve(most);
  }
}

void Stepper::reserve_for(std::span<const std::uint32_t> rows, const Cut& cut) {
  std::int64_t most = 0;
  for (const auto& shards : plan_of(rows, cut).shards) {
    for (const Shard& shard : shards) most = std::max(most, bytes_for(shard, Work::Train, cut.checkpointing));
  }
  for (const auto& lane : lanes_) lane->arena.reserve(most);
}

WindowPlan Stepper::plan_of(std::span<const std::uint32_t> rows, const Cut& cut) const {
  return plan_window(tokens_, rows, cut, workers_.size(), model_.network->wants(),
                     model_.config.pad_token_id.value_or(-1));
}

std::vector<std::uint32_t> Stepper::share_of(std::span<const std::uint32_t> rows) const {
  if (group_ == nullptr) return {rows.begin(), rows.end()};
  std::vector<std::int32_t> lengths;
  for (const std::uint32_t row : rows) lengths.push_back(tokens_.length(row));
  const auto shares = data::rank_shares(lengths, group_->size());
  std::vector<std::uint32_t> share;
  for (const std::uint32_t at : shares[static_cast<std::size_t>(group_->rank())]) share.push_back(rows[at]);
  return share;
}

// Empty when the memory for the plan is there. A thread keeps the room of its heaviest share; where that is
// in the way, all threads begin again with what this plan needs.
std::string Stepper::shortage(const WindowPlan& plan, Work work, Checkpointing checkpointing) {
  for (const bool last : {false, true}) {
    try {
      reserve(plan, work, checkpointing);
      break;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::OutOfMemory) throw;
      if (last) return e.message();
      release_activations();
    }
  }
  return "";
}

// Before any work: whether every rank has the memory for it, and how many targets all have together. A rank
// that gave up alone would leave the others waiting for its gradients.
double Stepper::agree(const std::string& out_of_memory, double own_targets) {
  const double own[] = {out_of_memory.empty() ? 0.0 : 1.0, own_targets};
  const std::vector<double> all = group_ != nullptr ? group_->gather(own) : std::vector<double>(own, own + 2);
  double targets = 0;
  for (std::size_t rank = 0; 2 * rank < all.size(); ++rank) {
    if (all[2 * rank] != 0) {
      throw Error(ErrorKind::OutOfMemory, group_ != nullptr ? fmt::format("rank {}", rank) : "memory limit",
                  out_of_memory.empty() ? "ran out of memory" : out_of_memory);
    }
    targets += all[2 * rank + 1];
  }
  return targets;
}

StepOutcome Stepper::accumulate(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step) {
  const auto start = Clock::now();
  const WindowPlan plan = plan_of(share_of(rows), cut);
  const std::string out_of_memory = shortage(plan, Work::Train, cut.checkpointing);
  const double input_seconds = seconds_since(start);
  const double targets = agree(out_of_memory, static_cast<double>(plan.targets));
  const double agree_seconds = seconds_since(start) - input_seconds;
  const double mean = 1.0 / std::max(targets, 1.0);
  if (group_ != nullptr) {
    std::vector<float*> blocks;
    for (const auto& lane : lanes_) blocks.push_back(lane->gradients.floats());
    gradient_sum_->start(std::move(blocks));
  }
  const std::function<void(std::int64_t)> part_done = [&](std::int64_t part) {
    gradient_sum_->finished(part);
  };
  workers_.run([&](int thread) {
    Lane& lane = *lanes_[static_cast<std::size_t>(thread)];
    lane.clock.start();
    lane.loss = 0;
    ops_.zero(lane.gradients.floats(), model_.parameters.trainable_count());
    Pass pass = pass_of(lane, true, step, cut.checkpointing);
    const std::vector<Shard>& shards = plan.shards[static_cast<std::size_t>(thread)];
    if (group_ != nullptr && shards.empty()) gradient_sum_->finished_all();
    for (const Shard& shard : shards) {
      if (group_ != nullptr && &shard == &shards.back()) pass.part_done = &part_done;
      lane.loss += model_.network->forward_backward(pass, shard, mean * scaler_.scale(), &lane.clock);
      if (group_ != nullptr) group_->progress();
    }
    lane.phases = lane.clock.stop();
  });
  StepOutcome outcome;
  outcome.micro_steps = plan.micro_steps;
  outcome.examples = plan.examples;
  outcome.real_tokens = plan.real_tokens;
  outcome.padded_tokens = plan.padded_tokens;
  for (const auto& lane : lanes_) {
    outcome.loss += lane->loss * mean;
    for (const Phase phase : {Phase::Forward, Phase::Loss, Phase::Backward}) {
      const auto at = static_cast<std::size_t>(phase);
      outcome.phases[at] += lane->phases[at] / static_cast<double>(lanes_.size());
    }
  }
  outcome.phases[static_cast<std::size_t>(Phase::Input)] = input_seconds;
  outcome.phases[static_cast<std::size_t>(Phase::Collective)] = agree_seconds;
  outcome.whole = {plan.examples, plan.real_tokens, plan.padded_tokens, memory_counts().peak_bytes};
  outcome.seconds = seconds_since(start);
  return outcome;
}

// Losses, counts and gradients of all ranks, in the first thread's block.
void Stepper::sum_over_ranks(std::span<const std::uint32_t> rows, StepOutcome& outcome) {
  // Padding, in the padded layouts, is token 0 or the model's own.
  std::vector<std::int32_t> ids = {
      0, static_cast<std::int32_t>(std::max<std::int64_t>(model_.config.pad_token_id.value_or(0), 0))};
  for (const std::uint32_t row : rows) {
    const auto of_row = tokens_.ids(row);
    ids.insert(ids.end(), of_row.begin(), of_row.end());
  }
  gradient_sum_->finish(ids);
  const double own[] = {outcome.loss, static_cast<double>(outcome.examples),
                        static_cast<double>(outcome.real_tokens), static_cast<double>(outcome.padded_tokens),
                        static_cast<double>(outcome.whole.most_peak_bytes)};
  const std::vector<double> all = group_->gather(own);
  outcome.loss = 0;
  outcome.whole = {};
  for (std::size_t at = 0; at < all.size(); at += std::size(own)) {
    outcome.loss += all[at];
    outcome.whole.examples += static_cast<std::int64_t>(all[at + 1]);
    outcome.whole.real_tokens += static_cast<std::int64_t>(all[at + 2]);
    outcome.whole.padded_tokens += static_cast<std::int64_t>(all[at + 3]);
    outcome.whole.most_peak_bytes =
        std::max(outcome.whole.most_peak_bytes, static_cast<std::int64_t>(all[at + 4]));
  }
}

StepOutcome Stepper::step(std::span<const std::uint32_t> rows, const Cut& cut, std::int64_t step,
                          double learning_rate) {
  const auto start = Clock::now();
  StepOutcome outcome = accumulate(rows, cut, step);
  const auto gathered = Clock::now();
  std::vector<float*> gradients = {lanes_.front()->gradients.floats()};
  if (group_ != nullptr) {
    sum_over_ranks(rows, outcome);
    outcome.phases[static_cast<std::size_t>(Phase::Collective)] += seconds_since(gathered);
  } else {
    for (std::size_t i = 1; i < lanes_.size(); ++i) gradients.push_back(lanes_[i]->gradients.floats());
  }
  const auto before = Clock::now();
  if (scaler_.scales()) outcome.loss_scale = scaler_.scale();
  outcome.grad_norm = optimizer_.step(workers_, gradients, learning_rate, scaler_.scale(), scaler_.scales());
  outcome.skipped = scaler_.scales() && !std::isfinite(outcome.grad_norm);
  scaler_.update(outcome.skipped);
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
    if (group_ != nullptr) trace_->add(0, {Phase::Collective, gathered, before});
    trace_->add(0, {Phase::Optimizer, before, end});
  }
  if (group_ == nullptr) outcome.whole.most_peak_bytes = memory_counts().peak_bytes;
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

// Loss and counts of all ranks.
Evaluation Stepper::whole_evaluation(const WindowPlan& plan, const std::vector<double>& losses) {
  double loss = 0;
  for (const double of_thread : losses) loss += of_thread;
  const double own[] = {static_cast<double>(plan.examples), static_cast<double>(plan.targets), loss};
  const std::vector<double> all = group_ != nullptr ? group_->gather(own) : std::vector<double>(own, own + 3);
  Evaluation result;
  for (std::size_t at = 0; at < all.size(); at += std::size(own)) {
    result.examples += static_cast<std::int64_t>(all[at]);
    result.targets += static_cast<std::int64_t>(all[at + 1]);
    result.loss += all[at + 2];
  }
  result.loss /= static_cast<double>(std::max<std::int64_t>(result.targets, 1));
  return result;
}

// Gives every rank the logits of every row: an answer may lie in windows of several ranks, so that their
// scores cannot simply be added. A row that is another rank's is empty here.
void Stepper::share_logits(std::vector<std::vector<float>>& by_row) {
  std::vector<double> sizes;
  for (const auto& row : by_row) sizes.push_back(static_cast<double>(row.size()));
  group_->sum(sizes);
  std::vector<double> values;
  for (std::size_t i = 0; i < by_row.size(); ++i) {
    by_row[i].resize(static_cast<std::size_t>(sizes[i]), 0.0f);
    values.insert(values.end(), by_row[i].begin(), by_row[i].end());
  }
  group_->sum(values);
  auto next = values.begin();
  for (auto& row : by_row) {
    for (float& logit : row) logit = static_cast<float>(*next++);
  }
}

// The cut fits the rows that train; held-out ones may be longer, and are then taken one by one.
WindowPlan Stepper::plan_of_evaluation(std::span<const std::uint32_t> rows, const Cut& cut, Work work) {
  const std::vector<std::uint32_t> share = share_of(rows);
  WindowPlan plan = plan_of(share, cut);
  const bool is_short = !shortage(plan, work, Checkpointing::None).empty();
  if (!(group_ == nullptr ? is_short : group_->any(is_short))) return plan;
  plan = plan_of(share, {.micro_batch = 1, .micro_tokens = 0, .layout = cut.layout});
  agree(shortage(plan, work, Checkpointing::None), 0);
  return plan;
}

Evaluation Stepper::evaluate(std::span<const std::uint32_t> rows, const Cut& cut,
                             std::vector<std::vector<float>>* logits) {
  const auto start = Clock::now();
  const std::unique_ptr<data::Metric> metric = data::make_metric(tokens_);
  const bool with_logits = metric != nullptr || logits != nullptr;
  const WindowPlan plan = plan_of_evaluation(rows, cut, with_logits ? Work::LossAndLogits : Work::Loss);
  std::vector<std::int64_t> place(tokens_.rows(), -1);
  for (std::size_t i = 0; i < rows.size(); ++i) place[rows[i]] = static_cast<std::int64_t>(i);
  std::vector<std::vector<float>> judged(with_logits ? rows.size() : 0);  // the logits of every row
  std::vector<double> losses(lanes_.size(), 0);
  workers_.run([&](int thread) {
    const auto t = static_cast<std::size_t>(thread);
    Lane& lane = *lanes_[t];
    const Pass pass = pass_of(lane, false, 0, Checkpointing::None);
    for (const Shard& shard : plan.shards[t]) {
      const ArenaScope scope(lane.arena);
      const Network::Evaluated evaluated = model_.network->evaluate(pass, shard, with_logits);
      losses[t] += evaluated.loss;
      if (with_logits) {
        auto by_sequence = download_logits(shard, evaluated.logits);
        for (std::size_t i = 0; i < by_sequence.size(); ++i) {
          const std::int64_t at = place[shard.tokens.sequences[i].example];
          judged[static_cast<std::size_t>(at)] = std::move(by_sequence[i]);
        }
      }
      if (group_ != nullptr) group_->progress();
    }
  });
  Evaluation result = whole_evaluation(plan, losses);
  if (group_ != nullptr && with_logits) share_logits(judged);
  for (std::size_t i = 0; i < rows.size() && metric != nullptr; ++i) metric->add(rows[i], judged[i]);
  if (metric != nullptr)
    result.metrics = metric->values();
  else
    result.metrics = {{"perplexity", std::exp(result.loss)}};
  if (logits != nullptr) *logits = std::move(judged);
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
