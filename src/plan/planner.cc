#include "plan/planner.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/units.h"
#include "model/known_models.h"
#include "plan/advice.h"
#include "plan/interval.h"
#include "plan/remedies.h"

namespace batchwright::plan {
namespace {

// A run that fits cannot show more than there is: near the limit the allocator gives its slack back before it
// gives up, so what it keeps is capped there.
void cap_at(MemoryPrediction& memory, double limit) {
  if (memory.needed > limit || memory.process <= limit) return;
  const double excess = std::min(memory.process - limit, memory.parts.allocator);
  memory.parts.allocator -= excess;
  memory.process = limit;
  memory.reserved = std::max(memory.allocated, std::min(memory.reserved, limit - memory.context));
}

Range scaled(double mid, Factors factors) { return {mid * factors.low, mid, mid * factors.high}; }

SplitPlan plan_split(const Request& request, const hardware::Device& device, const MemoryModel& memory,
                     const TimeModel& time, const Split& split, std::int64_t limit) {
  SplitPlan result;
  result.split = split;
  result.batch = check_batch(request.effective_batch, split);
  result.memory = memory.predict(split);
  cap_at(result.memory, static_cast<double>(limit));
  result.peak_bytes =
      scaled(result.memory.in(request.counter), memory_factors(request, device, request.counter));
  result.needed_bytes = scaled(result.memory.needed, fit_factors(request, device));
  result.fits = fits_within(result.memory, request, device, limit);
  if (result.fits == Fits::Yes && request.counter != Counter::Allocated) {
    result.peak_bytes.high =
        std::max(result.peak_bytes.mid, std::min(result.peak_bytes.high, static_cast<double>(limit)));
  }
  result.time = time.predict(split);
  result.step_seconds = scaled(result.time.total(), time_factors(request, device, result.time));
  return result;
}

std::vector<Split> splits_of(const Request& request) {
  if (request.micro_batch) {
    return {rounded_up_split(request.effective_batch, *request.micro_batch, request.devices)};
  }
  std::vector<Split> splits = exact_splits(request.effective_batch, request.devices);
  if (!splits.empty()) return splits;
  // No exact split on so many devices: powers of two, rounded up.
  for (std::int64_t micro = 1; micro <= request.effective_batch / request.devices; micro *= 2) {
    splits.insert(splits.begin(), rounded_up_split(request.effective_batch, micro, request.devices));
  }
  return splits;
}

double trained_parameters(const ModelShape& shape, const Request& request) {
  if (request.trains_all()) return shape.parameters;
  return shape.adapter_parameters(request.lora_rank) + shape.extra_trained + shape.head_parameters;
}

}  // namespace

std::string_view name_of(Fits fits) {
  return fits == Fits::Yes ? "yes" : (fits == Fits::No ? "no" : "unsure");
}

bool Plan::nothing_fits() const {
  return std::all_of(splits.begin(), splits.end(), [](const SplitPlan& s) { return s.fits == Fits::No; });
}

Fits fits_within(const MemoryPrediction& memory, const Request& request, const hardware::Device& device,
                 std::int64_t limit) {
  const Factors factors = fit_factors(request, device);
  const auto room = static_cast<double>(limit);
  if (memory.needed * factors.high <= room) return Fits::Yes;
  return memory.needed * factors.low > room ? Fits::No : Fits::Unsure;
}

const model::ModelConfig& Planner::config_of(const std::string& name) {
  auto& slot = configs_[name];
  if (!slot) {
    try {
      slot = std::make_unique<model::ModelConfig>(model::find_model(name));
    } catch (...) {
      configs_.erase(name);
      throw;
    }
  }
  return *slot;
}

const ModelShape& Planner::shape_for(const Request& request) {
  // LitGPT keeps a head of its own beside the embedding, whatever the checkpoint ties (it copies the weight).
  const bool unties = request.framework == Framework::LitGpt;
  std::string key = fmt::format("{}|{}|{}", request.model, name_of(request.task), unties);
  if (!request.trains_all()) {
    key += fmt::format("|{}|{}", fmt::join(request.lora_targets, ","),
                       fmt::join(request.lora_extra_trained, ","));
  }
  const auto found = shapes_.find(key);
  if (found != shapes_.end()) return *found->second;
  model::ModelConfig config = config_of(request.model);
  if (unties) config.tie_word_embeddings = false;
  const std::vector<std::string> none;
  auto shape = std::make_unique<ModelShape>(
      shape_of(config, request.task, request.trains_all() ? none : request.lora_targets,
               request.trains_all() ? none : request.lora_extra_trained));
  return *shapes_.emplace(key, std::move(shape)).first->second;
}

Plan Planner::plan(Request request) {
  Plan plan;
  const model::ModelConfig& config = config_of(request.model);
  if (!request.task_given) {
    request.task = default_task(config);
    request.assumed.emplace_back("task", std::string(name_of(request.task)));
  }
  // Its relative positions enter the scores: no fused kernel takes them.
  if (config.architecture == model::Architecture::DebertaV2 && request.attention != Attention::Eager) {
    request.attention = Attention::Eager;
    plan.warnings.emplace_back("DeBERTa has eager attention only: planned so");
  }
  plan.device = resolve_device(request);
  settle_types(request, plan.device.is_cpu(), plan.device.bf16_flops > 0);
  plan.request = std::move(request);
  const ModelShape& shape = shape_for(plan.request);
  plan.limit_bytes = plan.request.memory_bytes.value_or(plan.device.usable_bytes);
  plan.parameters = shape.parameters;
  plan.trained_parameters = trained_parameters(shape, plan.request);
  const MemoryModel memory(shape, plan.request, plan.device);
  const TimeModel time(shape, plan.request, plan.device);
  for (const Split& split : splits_of(plan.request)) {
    plan.splits.push_back(plan_split(plan.request, plan.device, memory, time, split, plan.limit_bytes));
  }
  recommend(plan);
  if (!plan.recommended)
    plan.if_nothing_fits =
        changes_that_help(plan, [this](const Request& r) -> const ModelShape& { return shape_for(r); });
  advise(plan, shape);
  return plan;
}

}  // namespace batchwright::plan
