#include "tune/remedies.h"

#include <fmt/format.h>

namespace batchwright::tune {
namespace {

// Upwards to whole MiB: what is printed must be enough.
std::string as_option(std::int64_t bytes) { return fmt::format("{}MiB", (bytes >> 20) + 1); }

}  // namespace

std::vector<Remedy> find_remedies(const run::TrainingOptions& options, const MeasurePeak& measure) {
  std::vector<Remedy> remedies;
  run::TrainingOptions changed = options;
  changed.memory_limit_bytes = 0;
  const auto peak = measure(changed);
  if (!peak) return remedies;  // then memory is not what is wrong
  remedies.push_back({"--memory-limit " + as_option(*peak), *peak});
  if (options.memory_limit_bytes == 0) return remedies;
  const auto try_change = [&](const run::TrainingOptions& with, const std::string& change) {
    const auto bytes = measure(with);
    if (bytes && *bytes <= options.memory_limit_bytes) remedies.push_back({change, *bytes});
  };
  if (options.method == run::Method::Full) {
    run::TrainingOptions lora = changed;
    lora.method = run::Method::Lora;
    try_change(lora, fmt::format("--lora {}", lora.lora.rank));
  }
  return remedies;
}

}  // namespace batchwright::tune
