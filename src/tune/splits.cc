#include "tune/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "plan/batch_arithmetic.h"

namespace batchwright::tune {
namespace {

run::Split of_plan(const plan::Split& split) {
  return {split.micro_batch, split.accumulation_steps, split.devices};
}

void add_splits(Candidates& candidates, std::int64_t effective_batch, std::int64_t devices,
                bool allow_inexact) {
  const std::size_t before = candidates.splits.size();
  for (const plan::Split& split : plan::exact_splits(effective_batch, devices)) {
    candidates.splits.push_back(of_plan(split));
  }
  for (std::int64_t micro = 1; allow_inexact && micro * devices <= effective_batch; micro *= 2) {
    const plan::Split split = plan::rounded_up_split(effective_batch, micro, devices);
    const plan::BatchCheck check = plan::check_batch(effective_batch, split);
    if (check.exact()) continue;
    candidates.splits.push_back(of_plan(split));
    candidates.warnings.push_back(plan::to_string(split) + ": " + check.warning());
  }
  if (candidates.splits.size() == before) {
    throw Error(ErrorKind::Usage, "--effective-batch",
                fmt::format("{} cannot be divided over {} devices", effective_batch, devices),
                "Choose a multiple of the devices, or give --allow-inexact");
  }
}

}  // namespace

Candidates candidate_splits(std::int64_t effective_batch, std::span<const std::int64_t> devices,
                            bool allow_inexact) {
  Candidates candidates;
  for (const std::int64_t count : devices) add_splits(candidates, effective_batch, count, allow_inexact);
  // A larger micro-batch needs more memory on each device, however many there are.
  std::sort(candidates.splits.begin(), candidates.splits.end(), [](const run::Split& a, const run::Split& b) {
    return std::pair(-a.micro_batch, a.devices) < std::pair(-b.micro_batch, b.devices);
  });
  return candidates;
}

std::vector<run::Split> splits_to_compare(const std::vector<run::Split>& candidates,
                                          const run::Split& reference,
                                          const std::optional<run::Split>& chosen) {
  if (chosen) return *chosen == reference ? std::vector<run::Split>{} : std::vector<run::Split>{*chosen};
  std::vector<run::Split> result;
  for (const double times : {4.0, 16.0}) {
    std::optional<run::Split> nearest;
    double least = 0;
    for (const run::Split& split : candidates) {
      if (split.micro_batch >= reference.micro_batch) continue;
      if (split.micro_batch == 1 && (nearest || !result.empty())) continue;
      const double ratio =
          static_cast<double>(split.accumulation_steps) / static_cast<double>(reference.accumulation_steps);
      const double distance = std::abs(std::log(ratio / times));
      if (!nearest || distance < least) nearest = split, least = distance;
    }
    if (nearest && std::find(result.begin(), result.end(), *nearest) == result.end())
      result.push_back(*nearest);
  }
  return result;
}

}  // namespace batchwright::tune
