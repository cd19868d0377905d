#include "plan/batch_arithmetic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace batchwright::plan {
namespace {

constexpr std::int64_t kMaxCount = 1ll << 40;  // the product of two stays far from overflow

void check_count(std::int64_t value, const char* name) {
  if (value < 1 || value > kMaxCount) {
    throw Error(ErrorKind::Usage, name,
                fmt::format("must lie between 1 and {}, and is {}", kMaxCount, value));
  }
}

void check_positive(double value, const char* name) {
  if (!(value > 0) || !std::isfinite(value)) {
    throw Error(ErrorKind::Usage, name, fmt::format("must be positive, and is {}", value));
  }
}

std::vector<std::int64_t> divisors_descending(std::int64_t number) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    high.push_back(number / i);
    if (i != number / i) low.push_back(i);
  }
  high.insert(high.end(), low.rbegin(), low.rend());
  return high;
}

}  // namespace

std::string to_string(const Split& split) {
  const std::string pair = fmt::format("{}x{}", split.micro_batch, split.accumulation_steps);
  return split.devices == 1 ? pair : fmt::format("{}x{}", pair, split.devices);
}

std::vector<Split> exact_splits(std::int64_t effective_batch, std::int64_t devices) {
  check_count(effective_batch, "effective batch");
  check_count(devices, "devices");
  if (effective_batch % devices != 0) return {};
  const std::int64_t per_device = effective_batch / devices;
  std::vector<Split> splits;
  for (const std::int64_t micro : divisors_descending(per_device)) {
    splits.push_back({micro, per_device / micro, devices});
  }
  return splits;
}

Split rounded_up_split(std::int64_t effective_batch, std::int64_t micro_batch, std::int64_t devices) {
  check_count(effective_batch, "effective batch");
  check_count(micro_batch, "micro-batch");
  check_count(devices, "devices");
  if (micro_batch > effective_batch / devices) {
    throw Error(ErrorKind::Usage, "micro-batch",
                fmt::format("{} examples on each of {} devices are more than the effective batch of {}",
                            micro_batch, devices, effective_batch),
                fmt::format("The largest is {}", std::max<std::int64_t>(1, effective_batch / devices)));
  }
  const std::int64_t per_pass = micro_batch * devices;
  return {micro_batch, (effective_batch + per_pass - 1) / per_pass, devices};
}

BatchCheck check_batch(std::int64_t requested, const Split& split) {
  check_count(requested, "effective batch");
  BatchCheck check;
  check.requested = requested;
  check.real = split.effective_batch();
  check.excess = static_cast<double>(check.real - requested) / static_cast<double>(requested);
  if (check.exact()) return check;
  const std::vector<Split> exact = exact_splits(requested, split.devices);  // largest micro-batch first
  const auto smaller = std::find_if(exact.begin(), exact.end(),
                                    [&](const Split& s) { return s.micro_batch < split.micro_batch; });
  if (smaller != exact.begin()) check.nearest_exact.push_back(*std::prev(smaller));
  if (smaller != exact.end()) check.nearest_exact.push_back(*smaller);
  const std::int64_t per_pass = split.micro_batch * split.devices;
  if (requested / per_pass > 0) check.nearest_effective_batches.push_back(requested / per_pass * per_pass);
  check.nearest_effective_batches.push_back((requested / per_pass + 1) * per_pass);
  return check;
}

std::string BatchCheck::warning() const {
  if (exact()) return "";
  std::vector<std::string> names;
  for (const Split& split : nearest_exact) names.push_back(to_string(split));
  return fmt::format("requested {}, real {}, {:+.3g} %; exact: {} (or an effective batch of {})", requested,
                     real, 100 * excess,
                     names.empty() ? "none on these devices" : fmt::format("{}", fmt::join(names, ", ")),
                     fmt::join(nearest_effective_batches, " or "));
}

LearningRateAdvice scale_learning_rate(double base_learning_rate, std::int64_t base_effective_batch,
                                       std::int64_t effective_batch, const std::string& rule) {
  check_positive(base_learning_rate, "base learning rate");
  check_count(base_effective_batch, "base effective batch");
  check_count(effective_batch, "effective batch");
  if (rule != "linear" && rule != "sqrt") {
    throw Error(ErrorKind::Usage, "lr-rule", fmt::format("\"{}\" is not a rule", rule), "Use linear or sqrt");
  }
  const double ratio = static_cast<double>(effective_batch) / static_cast<double>(base_effective_batch);
  return {base_learning_rate * ratio, base_learning_rate * std::sqrt(ratio), rule};
}

Warmup warmup_of(std::int64_t optimizer_steps, const Split& split) {
  if (optimizer_steps < 0 || optimizer_steps > kMaxCount) {
    throw Error(ErrorKind::Usage, "warm-up steps",
                fmt::format("must lie between 0 and {}, and is {}", kMaxCount, optimizer_steps));
  }
  return {optimizer_steps, optimizer_steps * split.accumulation_steps};
}

}  // namespace batchwright::plan
