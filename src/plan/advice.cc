#include "plan/advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/interval.h"

namespace batchwright::plan {
namespace {

constexpr double kTie = 0.02;  // splits within 2 % of each other are equally fast

bool has_headroom(const SplitPlan& split, const Plan& plan) {
  return split.memory.needed <= (1 - plan.request.headroom) * static_cast<double>(plan.limit_bytes);
}

// Indices of the splits that may be recommended; exact ones only, where there are any.
std::vector<std::size_t> candidates(const Plan& plan, bool with_headroom) {
  std::vector<std::size_t> exact, rounded;
  for (std::size_t i = 0; i < plan.splits.size(); ++i) {
    const SplitPlan& split = plan.splits[i];
    if (split.fits != Fits::Yes || (with_headroom && !has_headroom(split, plan))) continue;
    (split.batch.exact() ? exact : rounded).push_back(i);
  }
  return exact.empty() ? rounded : exact;
}

std::size_t fastest_of(const Plan& plan, const std::vector<std::size_t>& indices) {
  return *std::min_element(indices.begin(), indices.end(), [&](auto a, auto b) {
    return plan.splits[a].step_seconds.mid < plan.splits[b].step_seconds.mid;
  });
}

// Of those that tie with the fastest, the one that needs the least memory.
std::size_t best_of(const Plan& plan, const std::vector<std::size_t>& indices, std::size_t fastest) {
  const auto seconds = [&](std::size_t i) { return plan.splits[i].step_seconds.mid; };
  std::size_t best = fastest;
  for (const std::size_t i : indices) {
    if (seconds(i) > seconds(fastest) * (1 + kTie)) continue;
    if (plan.splits[i].memory.needed < plan.splits[best].memory.needed) best = i;
  }
  return best;
}

std::string reason_for(const Plan& plan, std::size_t index, std::size_t fastest, bool with_headroom) {
  const SplitPlan& chosen = plan.splits[index];
  const auto slowest =
      std::max_element(plan.splits.begin(), plan.splits.end(),
                       [](const auto& a, const auto& b) { return a.step_seconds.mid < b.step_seconds.mid; });
  std::string reason = fmt::format("{} is the fastest split that fits", to_string(chosen.split));
  if (index != fastest) {
    reason = fmt::format(
        "{} takes no more than {} longer than {}, the fastest split that fits, and needs less memory",
        to_string(chosen.split), format_percent(kTie, 0), to_string(plan.splits[fastest].split));
  }
  const double saving = 1 - chosen.step_seconds.mid / slowest->step_seconds.mid;
  if (plan.splits.size() == 1) reason = fmt::format("{} fits", to_string(chosen.split));
  if (saving > 0.005) {
    reason +=
        fmt::format(": {} less time a step than {}", format_percent(saving, 0), to_string(slowest->split));
  }
  reason += fmt::format("; it needs {} of {}", format_bytes(static_cast<std::int64_t>(chosen.memory.needed)),
                        format_bytes(plan.limit_bytes));
  if (!with_headroom)
    reason += fmt::format(", less than {} of headroom", format_percent(plan.request.headroom, 0));
  return reason;
}

}  // namespace

void recommend(Plan& plan) {
  for (const SplitPlan& split : plan.splits) {
    if (split.fits != Fits::Yes) continue;
    plan.largest_micro_batch_that_fits =
        std::max(plan.largest_micro_batch_that_fits.value_or(0), split.split.micro_batch);
  }
  for (const bool with_headroom : {true, false}) {
    const std::vector<std::size_t> indices = candidates(plan, with_headroom);
    if (indices.empty()) continue;
    const std::size_t fastest = fastest_of(plan, indices);
    plan.recommended = best_of(plan, indices, fastest);
    plan.reason = reason_for(plan, *plan.recommended, fastest, with_headroom);
    return;
  }
  plan.reason =
      plan.nothing_fits()
          ? fmt::format("nothing fits in {}", format_bytes(plan.limit_bytes))
          : "no split fits for certain: measure with `batchwright tune`, or take one of the changes";
}

namespace {

void warn(Plan& plan, const ModelShape& shape) {
  const Request& request = plan.request;
  for (const SplitPlan& split : plan.splits) {
    if (split.batch.exact()) continue;
    plan.warnings.push_back(split.batch.warning());
    break;
  }
  if (request.longest() > shape.config.max_positions) {
    plan.warnings.push_back(
        fmt::format("sequences of {} tokens are longer than the {} positions of the model", request.longest(),
                    shape.config.max_positions));
  }
  const bool this_machine = request.gpu == "cpu" || request.gpu == "auto";
  if (this_machine && !request.gpu_facts && plan.device.is_cpu() && plan.device.rates_by_rows.empty()) {
    plan.warnings.push_back(
        "this machine is not calibrated: its times are a rule of thumb that cannot order the splits; "
        "`batchwright calibrate` measures it in 20 s");
  }
  if (request.compute == ComputeType::Bf16 && !plan.device.is_cpu() && plan.device.bf16_flops <= 0) {
    plan.warnings.push_back(fmt::format(
        "{} has no bf16 arithmetic: times are for fp32; compute fp16 is much faster", plan.device.name));
  }
  if (request.attention == Attention::Flash &&
      (plan.device.architecture == "Turing" || plan.device.architecture == "Volta" ||
       plan.device.architecture == "Pascal")) {
    plan.warnings.push_back(fmt::format(
        "FlashAttention-2 does not run on {}; sdpa uses a memory-efficient kernel there", plan.device.name));
  }
  if (request.devices > 1 && request.sharding == Sharding::None) {
    plan.warnings.push_back(
        "sharding is none on several devices: gradients are not exchanged; ddp is the plain choice");
  }
}

}  // namespace

void advise(Plan& plan, const ModelShape& shape) {
  const Request& request = plan.request;
  const SplitPlan& chosen = plan.splits[plan.recommended.value_or(plan.splits.size() - 1)];
  if (request.base_learning_rate && request.base_effective_batch) {
    plan.learning_rate = scale_learning_rate(*request.base_learning_rate, *request.base_effective_batch,
                                             chosen.batch.real, request.lr_rule);
  } else if (request.base_learning_rate || request.base_effective_batch) {
    plan.warnings.push_back("learning-rate advice needs both base_learning_rate and base_effective_batch");
  }
  if (request.warmup_steps) plan.warmup = warmup_of(*request.warmup_steps, chosen.split);
  warn(plan, shape);
}

}  // namespace batchwright::plan
