#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace batchwright::plan {

enum class Task { CausalLm, SequenceClassification, TokenClassification, QuestionAnswering };
enum class Method { Full, Lora, Qlora };
enum class WeightType { Fp32, Bf16, Fp16, Nf4, Nf4Double, Int4, Int8 };
enum class ComputeType { Fp32, Tf32, Bf16, Fp16 };
enum class Optimizer { AdamW, AdamWFused, AdamW8bit, PagedAdamW8bit, Sgd, Adafactor };
enum class Checkpointing { None, Full, Selective };
enum class Attention { Eager, Sdpa, Flash };
enum class Loss { FullLogits, Fused, Chunked };
enum class Sharding { None, Ddp, Zero1, Zero2, Zero3, Fsdp };
enum class Offload { None, Optimizer, All };
enum class Framework { Transformers, PyTorch, Native, LitGpt, TorchTune };
enum class AdapterType { Fp32, Bf16 };
// Which memory is meant: the allocator's live bytes, what it keeps from the driver, or the whole process.
enum class Counter { Allocated, Reserved, Process };

// Sequence lengths in tokens and how often each occurs, ascending.
struct LengthHistogram {
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;

  std::int64_t longest() const { return counts.back().first; }
  double mean() const;
  // The expected longest of `draws` independent lengths: what a micro-batch is padded to.
  double expected_longest(std::int64_t draws) const;
};

// One question to the planner, checked. JSON keys are the field names (../docs/plan.md).
struct Request {
  std::string model;
  Task task = Task::CausalLm;
  bool task_given = false;  // false: the model decides
  Method method = Method::Full;
  std::int64_t lora_rank = 16;
  std::vector<std::string> lora_targets = {"all-linear"};
  std::vector<std::string> lora_extra_trained;  // modules trained in full beside the adapters
  WeightType weights = WeightType::Fp32;
  ComputeType compute = ComputeType::Bf16;
  bool compute_given = false, weights_given = false;  // false: the device decides, see settle_types
  Optimizer optimizer = Optimizer::AdamW;
  Checkpointing checkpointing = Checkpointing::None;
  Attention attention = Attention::Sdpa;
  Loss loss = Loss::FullLogits;
  Sharding sharding = Sharding::None;
  Offload offload = Offload::None;
  Framework framework = Framework::Transformers;
  AdapterType adapter_weights = AdapterType::Fp32;
  // peft.prepare_model_for_kbit_training was called (TRL and most examples do): what bitsandbytes does not
  // pack, and with it the stream between the blocks, is fp32.
  bool kbit_preparation = false;
  LengthHistogram lengths;  // one entry when seq_len was given
  std::int64_t effective_batch = 0;
  std::optional<std::int64_t> micro_batch;  // fixes the split
  std::int64_t devices = 1;
  std::string gpu;                // a name, "cpu" or "auto"
  std::optional<Json> gpu_facts;  // a described device instead of a name
  std::optional<std::int64_t> memory_bytes;
  Counter counter = Counter::Reserved;
  double headroom = 0.08;  // share of the usable memory that the recommendation leaves free
  std::optional<std::int64_t> base_effective_batch;
  std::optional<double> base_learning_rate;
  std::optional<std::int64_t> warmup_steps;
  std::string lr_rule = "linear";

  // What the request left open and the planner assumed: key and value, for the answer.
  std::vector<std::pair<std::string, std::string>> assumed;

  bool trains_all() const { return method == Method::Full; }
  std::int64_t longest() const { return lengths.longest(); }
};

// Throws InvalidInput naming the key that is unknown (with the nearest),
// of a wrong type or out of range, and Usage where two keys contradict each other.
Request parse_request(const Json& document, const std::string& subject);

std::string_view name_of(Task value);
std::string_view name_of(Method value);
std::string_view name_of(WeightType value);
std::string_view name_of(ComputeType value);
std::string_view name_of(Optimizer value);
std::string_view name_of(Checkpointing value);
std::string_view name_of(Attention value);
std::string_view name_of(Loss value);
std::string_view name_of(Sharding value);
std::string_view name_of(Offload value);
std::string_view name_of(Framework value);
std::string_view name_of(AdapterType value);
std::string_view name_of(Counter value);

// Settles the types that the request left open by what the device and the framework can compute in: fp32 for
// the native engine and on a CPU, fp16 where a GPU has no bf16 arithmetic.
void settle_types(Request& request, bool cpu, bool has_bf16);

// Every key that a request may hold.
const std::vector<std::string_view>& request_keys();

}  // namespace batchwright::plan
