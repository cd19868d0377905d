#include "plan/request_names.h"

#include <algorithm>
#include <array>

#include "plan/request.h"

namespace batchwright::plan {
namespace {

template <typename E, std::size_t N>
std::string_view find_name(const std::array<std::pair<std::string_view, E>, N>& names, E value) {
  for (const auto& [name, candidate] : names) {
    if (candidate == value) return name;
  }
  return "";
}

}  // namespace

std::string_view name_of(Task value) { return find_name(kTasks, value); }
std::string_view name_of(Method value) { return find_name(kMethods, value); }
std::string_view name_of(WeightType value) { return find_name(kWeightTypes, value); }
std::string_view name_of(ComputeType value) { return find_name(kComputeTypes, value); }
std::string_view name_of(Optimizer value) { return find_name(kOptimizers, value); }
std::string_view name_of(Checkpointing value) { return find_name(kCheckpointings, value); }
std::string_view name_of(Attention value) { return find_name(kAttentions, value); }
std::string_view name_of(Loss value) { return find_name(kLosses, value); }
std::string_view name_of(Sharding value) { return find_name(kShardings, value); }
std::string_view name_of(Offload value) { return find_name(kOffloads, value); }
std::string_view name_of(Framework value) { return find_name(kFrameworks, value); }
std::string_view name_of(AdapterType value) { return find_name(kAdapterTypes, value); }
std::string_view name_of(Counter value) { return find_name(kCounters, value); }

const std::vector<std::string_view>& request_keys() {
  static const std::vector<std::string_view> keys = {"model",
                                                     "task",
                                                     "method",
                                                     "lora_rank",
                                                     "lora_targets",
                                                     "lora_extra_trained",
                                                     "kbit_preparation",
                                                     "weights",
                                                     "compute",
                                                     "optimizer",
                                                     "checkpointing",
                                                     "attention",
                                                     "loss",
                                                     "sharding",
                                                     "offload",
                                                     "framework",
                                                     "adapter_weights",
                                                     "seq_len",
                                                     "lengths",
                                                     "effective_batch",
                                                     "micro_batch",
                                                     "devices",
                                                     "gpu",
                                                     "memory_bytes",
                                                     "counter",
                                                     "headroom",
                                                     "base_effective_batch",
                                                     "base_learning_rate",
                                                     "warmup_steps",
                                                     "lr_rule",
                                                     "id"};
  return keys;
}

}  // namespace batchwright::plan
