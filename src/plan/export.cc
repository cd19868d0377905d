#include "plan/export.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/json.h"

namespace batchwright::plan {
namespace {

// What every format needs, worked out once.
struct Settings {
  const Request& request;
  Split split;
  std::int64_t warmup_steps = 0;
  std::optional<double> learning_rate;

  bool bf16() const { return request.compute == ComputeType::Bf16; }
  bool fp16() const { return request.compute == ComputeType::Fp16; }
  bool checkpoints() const { return request.checkpointing != Checkpointing::None; }
  bool adapters() const { return request.method != Method::Full; }
};

Settings settings_of(const Plan& plan, std::size_t index) {
  Settings settings{plan.request, plan.splits.at(index).split, plan.request.warmup_steps.value_or(0),
                    std::nullopt};
  if (plan.learning_rate) settings.learning_rate = plan.learning_rate->chosen();
  return settings;
}

std::string_view optimizer_name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::AdamW:
      return "adamw_torch";
    case Optimizer::AdamWFused:
      return "adamw_torch_fused";
    case Optimizer::AdamW8bit:
      return "adamw_bnb_8bit";
    case Optimizer::PagedAdamW8bit:
      return "paged_adamw_8bit";
    case Optimizer::Sgd:
      return "sgd";
    case Optimizer::Adafactor:
      return "adafactor";
  }
  return "adamw_torch";
}

std::string transformers_settings(const Settings& s) {
  Json arguments = {{"per_device_train_batch_size", s.split.micro_batch},
                    {"gradient_accumulation_steps", s.split.accumulation_steps},
                    {"optim", optimizer_name(s.request.optimizer)},
                    {"bf16", s.bf16()},
                    {"fp16", s.fp16()},
                    {"tf32", s.request.compute == ComputeType::Tf32 ? Json(true) : Json(nullptr)},
                    {"gradient_checkpointing", s.checkpoints()},
                    // Counted in optimizer steps by the Trainer, and wins over warmup_ratio.
                    {"warmup_steps", s.warmup_steps},
                    // A last batch that is not whole would be another effective batch.
                    {"dataloader_drop_last", true}};
  if (s.checkpoints()) arguments["gradient_checkpointing_kwargs"] = {{"use_reentrant", false}};
  if (s.learning_rate) arguments["learning_rate"] = *s.learning_rate;
  return arguments.dump(2) + "\n";
}

std::string accelerate_settings(const Settings& s) {
  const bool fsdp = s.request.sharding == Sharding::Fsdp;
  const bool zero = s.request.sharding == Sharding::Zero1 || s.request.sharding == Sharding::Zero2 ||
                    s.request.sharding == Sharding::Zero3;
  const char* kind = fsdp ? "FSDP" : (zero ? "DEEPSPEED" : (s.split.devices > 1 ? "MULTI_GPU" : "NO"));
  std::string text = fmt::format(
      "# accelerate launch --config_file THIS train.py\n"
      "# Also pass gradient_accumulation_steps={0} to Accelerator(...) and batch_size={1} to the DataLoader "
      "(drop_last=True);\n"
      "# a prepared scheduler steps once a process and optimizer step: give it warm-up in optimizer steps "
      "({2}).\n"
      "compute_environment: LOCAL_MACHINE\ndistributed_type: {3}\nmixed_precision: '{4}'\nnum_machines: 1\n"
      "num_processes: {5}\nmachine_rank: 0\nmain_training_function: main\nuse_cpu: false\n",
      s.split.accumulation_steps, s.split.micro_batch, s.warmup_steps, kind,
      s.bf16() ? "bf16" : (s.fp16() ? "fp16" : "no"), s.split.devices);
  if (fsdp) {
    text +=
        "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_auto_wrap_policy: "
        "TRANSFORMER_BASED_WRAP\n"
        "  fsdp_use_orig_params: true\n  fsdp_offload_params: " +
        std::string(s.request.offload == Offload::All ? "true" : "false") + "\n";
  }
  if (zero) {
    const int stage =
        s.request.sharding == Sharding::Zero1 ? 1 : (s.request.sharding == Sharding::Zero2 ? 2 : 3);
    text += fmt::format(
        "deepspeed_config:\n  zero_stage: {}\n  gradient_accumulation_steps: {}\n  offload_optimizer_device: "
        "{}\n",
        stage, s.split.accumulation_steps, s.request.offload == Offload::None ? "none" : "cpu");
  }
  return text;
}

std::string deepspeed_settings(const Settings& s) {
  const int stage = s.request.sharding == Sharding::Zero1   ? 1
                    : s.request.sharding == Sharding::Zero2 ? 2
                    : s.request.sharding == Sharding::Zero3 ? 3
                                                            : 0;
  Json config = {{"train_batch_size", s.split.effective_batch()},
                 {"train_micro_batch_size_per_gpu", s.split.micro_batch},
                 {"gradient_accumulation_steps", s.split.accumulation_steps},
                 {"bf16", {{"enabled", s.bf16()}}},
                 {"fp16", {{"enabled", s.fp16()}}},
                 {"zero_optimization", {{"stage", stage}}},
                 {"gradient_clipping", 1.0}};
  if (s.request.offload != Offload::None)
    config["zero_optimization"]["offload_optimizer"] = {{"device", "cpu"}};
  if (s.request.offload == Offload::All) config["zero_optimization"]["offload_param"] = {{"device", "cpu"}};
  // total_num_steps counts optimizer steps, as DeepSpeed's scheduler does; `auto` values would take the
  // Trainer's.
  config["scheduler"] = {{"type", "WarmupLR"}, {"params", {{"warmup_num_steps", s.warmup_steps}}}};
  return config.dump(2) + "\n";
}

std::string lightning_settings(const Settings& s) {
  const char* strategy = s.request.sharding == Sharding::Fsdp    ? "fsdp"
                         : s.request.sharding == Sharding::Zero1 ? "deepspeed_stage_1"
                         : s.request.sharding == Sharding::Zero2 ? "deepspeed_stage_2"
                         : s.request.sharding == Sharding::Zero3 ? "deepspeed_stage_3"
                         : s.split.devices > 1                   ? "ddp"
                                                                 : "auto";
  return fmt::format(
      "# Trainer(**trainer); DataLoader(dataset, **dataloader). A scheduler with \"interval\": \"step\" "
      "steps once an optimizer\n"
      "# step in Lightning: warm-up is {} steps of it, not of the loader.\n"
      "trainer:\n  accumulate_grad_batches: {}\n  devices: {}\n  strategy: {}\n  precision: {}\n  "
      "gradient_clip_val: 1.0\n"
      "dataloader:\n  batch_size: {}\n  drop_last: true\n  shuffle: true\n",
      s.warmup_steps, s.split.accumulation_steps, s.split.devices, strategy,
      s.bf16() ? "bf16-mixed" : (s.fp16() ? "16-mixed" : "32-true"), s.split.micro_batch);
}

std::string axolotl_settings(const Settings& s) {
  std::string text = fmt::format(
      "# From axolotl's documented keys; not verified by batchwright.\n"
      "micro_batch_size: {}\ngradient_accumulation_steps: {}\nsequence_len: {}\nwarmup_steps: {}\noptimizer: "
      "{}\nbf16: {}\nfp16: {}\n"
      "gradient_checkpointing: {}\nflash_attention: {}\n",
      s.split.micro_batch, s.split.accumulation_steps, s.request.longest(), s.warmup_steps,
      optimizer_name(s.request.optimizer), s.bf16(), s.fp16(), s.checkpoints(),
      s.request.attention == Attention::Flash);
  if (s.adapters()) {
    text += fmt::format("adapter: {}\nlora_r: {}\nload_in_4bit: {}\n", name_of(s.request.method),
                        s.request.lora_rank, s.request.method == Method::Qlora);
    if (s.request.lora_targets.front() == "all-linear") text += "lora_target_linear: true\n";
  }
  if (s.learning_rate) text += fmt::format("learning_rate: {:.6g}\n", *s.learning_rate);
  return text;
}

std::string llama_factory_settings(const Settings& s) {
  std::string text = fmt::format(
      "# From LLaMA-Factory's documented keys; not verified by batchwright.\n"
      "stage: sft\ndo_train: true\nfinetuning_type: {}\nper_device_train_batch_size: "
      "{}\ngradient_accumulation_steps: {}\n"
      "cutoff_len: {}\nwarmup_steps: {}\noptim: {}\nbf16: {}\nfp16: {}\n",
      s.adapters() ? "lora" : "full", s.split.micro_batch, s.split.accumulation_steps, s.request.longest(),
      s.warmup_steps, optimizer_name(s.request.optimizer), s.bf16(), s.fp16());
  if (s.adapters())
    text += fmt::format("lora_rank: {}\nlora_target: {}\n", s.request.lora_rank,
                        s.request.lora_targets.front() == "all-linear"
                            ? "all"
                            : fmt::format("{}", fmt::join(s.request.lora_targets, ",")));
  if (s.request.method == Method::Qlora) text += "quantization_bit: 4\n";
  if (!s.checkpoints()) text += "disable_gradient_checkpointing: true\n";
  if (s.learning_rate) text += fmt::format("learning_rate: {:.6g}\n", *s.learning_rate);
  return text;
}

constexpr std::array<std::pair<std::string_view, std::string (*)(const Settings&)>, 6> kFormats = {
    {{"transformers", transformers_settings},
     {"accelerate", accelerate_settings},
     {"deepspeed", deepspeed_settings},
     {"lightning", lightning_settings},
     {"axolotl", axolotl_settings},
     {"llama-factory", llama_factory_settings}}};

}  // namespace

const std::vector<std::string_view>& export_formats() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto& [name, write] : kFormats) all.push_back(name);
    return all;
  }();
  return names;
}

std::string export_settings(const Plan& plan, std::size_t index, std::string_view format) {
  for (const auto& [name, write] : kFormats) {
    if (name == format) return write(settings_of(plan, index));
  }
  const std::string near = nearest_choice(format, export_formats());
  throw Error(ErrorKind::Usage, "--format", fmt::format("\"{}\" is not known", format),
              near.empty() ? fmt::format("Use one of {}", fmt::join(export_formats(), ", "))
                           : fmt::format("Did you mean \"{}\"?", near));
}

}  // namespace batchwright::plan
