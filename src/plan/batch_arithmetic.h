#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace batchwright::plan {

// One way to cut an effective batch: micro-batch x accumulation steps x devices.
struct Split {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  std::int64_t devices = 1;

  std::int64_t effective_batch() const { return micro_batch * accumulation_steps * devices; }
  bool operator==(const Split&) const = default;
};

std::string to_string(const Split& split);  // "8x4"; "8x4x2" when devices > 1

// Every split whose product is exactly effective_batch on this many devices, largest micro-batch first: one
// for each divisor of effective_batch / devices. Empty when devices do not divide it. Throws Usage when a
// number is not in [1, 2^40].
std::vector<Split> exact_splits(std::int64_t effective_batch, std::int64_t devices = 1);

// accumulation_steps = ceil(effective_batch / (micro_batch * devices)): the documented rule where the
// division has a rest. Throws Usage when a number is not positive or micro_batch * devices exceeds
// effective_batch.
Split rounded_up_split(std::int64_t effective_batch, std::int64_t micro_batch, std::int64_t devices = 1);

// What a split makes of the effective batch that was asked for.
struct BatchCheck {
  std::int64_t requested = 0;
  std::int64_t real = 0;
  double excess = 0;                 // (real - requested) / requested
  std::vector<Split> nearest_exact;  // same devices: the next smaller and the next larger micro-batch
  std::vector<std::int64_t>
      nearest_effective_batches;  // what this micro-batch gives exactly, below and above

  bool exact() const { return real == requested; }
  // "requested 100, real 104, +4 %; exact: 10x10, 5x20 (or an effective batch of 96)", or "" when exact.
  std::string warning() const;
};

BatchCheck check_batch(std::int64_t requested, const Split& split);

// Learning rates for another effective batch. linear: in proportion to it (Goyal et al. 2017, for SGD; what
// the common advice says for every optimizer). sqrt: with its square root (Malladi et al. 2022, for Adam).
struct LearningRateAdvice {
  double linear = 0;
  double sqrt = 0;
  std::string rule;  // "linear" or "sqrt": the one asked for
  double chosen() const { return rule == "sqrt" ? sqrt : linear; }
};

// Throws Usage when a value is not positive or the rule is not "linear" or "sqrt".
LearningRateAdvice scale_learning_rate(double base_learning_rate, std::int64_t base_effective_batch,
                                       std::int64_t effective_batch, const std::string& rule = "linear");

// Warm-up is defined in optimizer steps; in a loop that counts micro-batches it lasts `micro_steps`.
struct Warmup {
  std::int64_t optimizer_steps = 0;
  std::int64_t micro_steps = 0;
};

Warmup warmup_of(std::int64_t optimizer_steps, const Split& split);

}  // namespace batchwright::plan
