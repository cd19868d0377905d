#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace batchwright::run {

enum class Method { Full, Lora };
enum class Schedule { Linear, Cosine, Constant };

// "full", "lora"; "linear", "cosine", "constant". Parsing throws Usage naming `subject`.
Method parse_method(std::string_view text, const std::string& subject);
Schedule parse_schedule(std::string_view text, const std::string& subject);
std::string method_name(Method method);
std::string schedule_name(Schedule schedule);

struct LoraOptions {
  std::int64_t rank = 16;
  double alpha = 32;             // the update is scaled by alpha / rank
  bool rank_stabilised = false;  // by alpha / sqrt(rank) instead (Kalajdzievski 2023)
  double dropout = 0.05;
  std::vector<std::string> targets = {
      "all-linear"};                       // module names, or all-linear: every linear layer but the head
  std::vector<std::string> extra_trained;  // modules trained in full beside the adapters and the head
};

// Defaults of --learning-rate: adapters start from nothing and take a tenfold rate, whole models do not bear
// it.
inline constexpr double kLoraLearningRate = 5e-4, kFullLearningRate = 5e-5;

// What training computes, whatever the split: two runs with equal options see equal gradients.
// Field names in JSON are those of ../docs/train.md's options with underscores.
struct TrainingOptions {
  std::int64_t effective_batch = 0;
  Method method = Method::Full;
  LoraOptions lora;
  std::int64_t max_length = 128;
  std::optional<std::int64_t> steps;  // optimizer steps; wins over epochs
  double epochs = 1;
  double learning_rate = kLoraLearningRate;
  std::int64_t warmup_steps = 0;
  Schedule schedule = Schedule::Linear;
  double weight_decay = 0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  double clip = 1.0;                    // maximum gradient norm; 0: no clipping
  std::optional<double> model_dropout;  // overrides every dropout rate of config.json
  std::uint64_t seed = 0;
  double eval_fraction = 0.1;
  std::string device = "cpu";  // cpu, cuda, or torch-cpu: the engine's reference in ATen calls, for tests
  int threads = 0;             // 0: every core this process may use
  std::int64_t memory_limit_bytes = 0;      // 0: none
  std::string layout = "auto";              // auto, packed, sorted, arrival
  std::string checkpointing = "none";       // none, selective, full
  std::string precision = "fp32";           // fp32, bf16, fp16, pure-bf16: see engine/precision.h
  double loss_scale = 65536;                // fp16's first one, torch.amp.GradScaler's init_scale
  std::int64_t loss_scale_interval = 2000;  // steps without overflow after which it doubles
  std::int64_t save_every = 0;              // optimizer steps between checkpoints; 0: none
  std::int64_t keep = 2;                    // how many checkpoints stay on disk

  // Throws Usage naming the option that is out of range.
  void check() const;
};

Json to_json(const TrainingOptions& options);
// Those that change the mathematics. Where it runs, how it is laid out and how often it is saved are left
// out: a training that stopped may go on elsewhere, on other threads or with another memory limit.
Json deciding_options(const TrainingOptions& options);
TrainingOptions training_options_from_json(const Json& object, const std::string& subject);

// How an effective batch is cut. A split as a person writes it, "8x4" or "8x4x2" (micro-batch x accumulation
// steps x devices), or a token cut: micro-batches filled to micro_tokens real tokens, however many examples
// that makes.
struct Split {
  std::int64_t micro_batch = 1;
  std::int64_t accumulation_steps = 1;
  std::int64_t devices = 1;
  std::int64_t micro_tokens = 0;  // > 0: a token cut; micro_batch and accumulation_steps are 0 then

  static Split of_tokens(std::int64_t micro_tokens) { return {0, 0, 1, micro_tokens}; }
  bool is_token_cut() const { return micro_tokens > 0; }
  // Examples an optimizer step; 0 for a token cut, which takes whatever the effective batch is.
  std::int64_t effective_batch() const { return micro_batch * accumulation_steps * devices; }
  bool operator==(const Split&) const = default;
};

Split parse_split(const std::string& text, const std::string& subject);  // throws Usage; no token cuts
std::string to_string(const Split& split);  // "8x4"; "8x4x2" when devices > 1; "512 tokens"
// The split of the same effective batch on another number of devices: with its micro-batch where that
// divides, else with the largest smaller one; a token cut stays as it is. Throws Usage naming `subject` when
// the devices do not divide the batch.
Split on_devices(const Split& split, std::int64_t devices, const std::string& subject);

enum class JobMode { Trials, Train, Dump, Verify };

// The file that starts batchwright-engine: `batchwright-engine JOB.json`, with BATCHWRIGHT_SOCKET set.
// Trials: load, say hello, then serve `split` messages until `stop`. Train: train with `split`, write
// steps.jsonl, summary.json and the model under run_folder, mirroring every step on the socket. Dump: write
// losses, gradients and logits under run_folder, to compare them with another implementation's. Verify:
// compare the gradient of every split, layout and checkpointing mode with the uncut batch's.
struct EngineJob {
  JobMode mode = JobMode::Trials;
  std::string model_folder;
  std::string token_file;
  std::string run_folder;
  std::string adapter_folder;  // a LoRA adapter in PEFT's layout to start from; empty: a fresh one
  Split split;                 // Train and Dump
  std::string trace_file;      // Train: where to write a trace of the first steps; empty: none
  TrainingOptions options;
};

Json to_json(const EngineJob& job);
EngineJob engine_job_from_json(const Json& object, const std::string& subject);

}  // namespace batchwright::run
