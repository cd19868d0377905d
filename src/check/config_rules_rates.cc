#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/config_rules.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

bool rates_differ(double a, double b) { return std::abs(a - b) > 1e-6 * std::max(std::abs(a), std::abs(b)); }

// Families of schedules that give the same curve; "" for one that is not known.
std::string family(std::string_view written) {
  const std::string name = normal_key(written);
  if (name.find("cosine") != std::string::npos && name.find("restart") == std::string::npos) return "cosine";
  if (name == "warmuplr" || name == "constant_with_warmup" || name == "constant") return "constant";
  if (name == "warmupdecaylr" || name == "linear") return "linear";
  if (name == "onecycle" || name == "lrrangetest" || name == "polynomial" || name == "inverse_sqrt" ||
      name.find("restart") != std::string::npos)
    return name;
  return "";
}

void engine_rate(const Run& run, const Setting& engine, const std::vector<std::string>& files,
                 FindingList& found) {
  if (engine.is_auto || !engine.number) return;
  const Setting* argument = run.arguments.find(Q::LearningRate);
  if (argument != nullptr && !argument->number) return;
  const bool defaulted = argument == nullptr;
  if (defaulted && (!run.trainer() || !run.complete || run.arguments.tool == Tool::Axolotl)) return;
  const double wanted = defaulted ? 5e-5 : *argument->number;  // transformers.TrainingArguments.learning_rate
  if (!rates_differ(*engine.number, wanted)) return;
  Finding& f = found.add("lr_override", engine);
  f.what = fmt::format("{} is {} in {}, and the arguments say {:g}{}", engine.key, engine.written,
                       files[engine.file], wanted,
                       defaulted ? " (the Trainer's default)"
                                 : fmt::format(" ({})", place(argument->file, argument->line, files)));
  f.consequence =
      run.trainer()
          ? "the Trainer refuses to start; where nobody compares, the engine's value is the one that trains"
          : "the engine's value is the one that trains";
  f.fix = "\"auto\" here, or one number in both";
  found.correct(engine, run.trainer() ? "\"auto\"" : spell(wanted));
  if (!run.trainer() || defaulted) return;
  Finding& twice = found.add("two_places", *argument);
  twice.what = fmt::format("the learning rate is {} here and {} in {}", argument->written, engine.written,
                           place(engine.file, engine.line, files));
  twice.consequence = "the Trainer compares the two and refuses to start";
  twice.fix = "\"auto\" in the DeepSpeed file";
}

// WarmupLR without warmup_max_lr: DeepSpeed's own default of 0.001 becomes the learning rate
// (deepspeed/runtime/lr_schedules.py; releases from mid-2025 on take the optimizer's).
void default_peak(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* type = run.engine->find(Q::ScheduleType);
  if (type == nullptr || !type->written.starts_with("Warmup") || type->written == "WarmupCosineLR") return;
  if (run.engine->find(Q::SchedulePeak) != nullptr) return;
  const Setting* rate = run.engine->find(Q::LearningRate);
  if (rate == nullptr || !rate->number) rate = run.arguments.find(Q::LearningRate);
  if (rate == nullptr || !rate->number || !rates_differ(*rate->number, 0.001)) return;
  const bool in_engine = rate->file == run.engine->file;
  Finding& f = found.add(in_engine ? "silent_override" : "lr_override", *type);
  f.what = fmt::format("{} has no warmup_max_lr, while the learning rate is {}", type->written,
                       spell(*rate, files));
  f.consequence = "the scheduler's default of 0.001 replaces it";
  f.fix = fmt::format("\"warmup_max_lr\": {}", run.trainer() ? "\"auto\"" : rate->written);
}

void engine_schedule(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* engine = run.engine->find(Q::ScheduleType);
  const Setting* argument = run.arguments.find(Q::ScheduleType);
  if (engine == nullptr || argument == nullptr) return;
  const std::string theirs = family(engine->written), ours = family(argument->written);
  if (theirs.empty() || ours.empty() || theirs == ours) return;
  Finding& f = found.add("lr_override", *engine);
  f.what =
      fmt::format("the engine's scheduler {} stands beside {}", engine->written, spell(*argument, files));
  f.consequence =
      "the engine's scheduler is used, and the one in the arguments is ignored: the learning rate follows "
      "another curve";
  f.fix = "remove \"scheduler\" from the DeepSpeed file";
}

void warmup_twice(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* steps = run.arguments.find(Q::WarmupSteps);
  const Setting* ratio = run.arguments.find(Q::WarmupRatio);
  if (steps == nullptr || ratio == nullptr || !run.trainer()) return;
  if (steps->number.value_or(0) <= 0 || ratio->number.value_or(0) <= 0) return;
  const bool refused = run.arguments.tool == Tool::Axolotl;
  Finding& f = found.add(refused ? "two_places" : "silent_override", *ratio);
  f.what = fmt::format("{} has no effect beside {}", spell(*ratio, files), spell(*steps, files));
  f.consequence =
      refused ? "Axolotl refuses: the two exclude each other" : "warmup_steps win over warmup_ratio";
  f.fix = "keep one of the two";
}

}  // namespace

void check_engine_rates(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  if (!run.engine) return;
  if (run.has_arguments()) {
    if (const Setting* rate = run.engine->find(Q::LearningRate)) engine_rate(run, *rate, files, found);
    if (const Setting* peak = run.engine->find(Q::SchedulePeak)) engine_rate(run, *peak, files, found);
    engine_schedule(run, files, found);
  }
  default_peak(run, files, found);
  const Setting* rate = run.engine->find(Q::LearningRate);
  const Setting* peak = run.engine->find(Q::SchedulePeak);
  if (rate == nullptr || peak == nullptr || !rate->number || !peak->number ||
      !rates_differ(*rate->number, *peak->number))
    return;
  Finding& f = found.add("lr_override", *peak);
  f.what = fmt::format("{} is {}, and the optimizer's lr {}", peak->key, peak->written, rate->written);
  f.consequence = "the scheduler sets the learning rate: the optimizer's is never used";
  f.fix = fmt::format("the same number in both");
}

void check_overrides(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  warmup_twice(run, files, found);
  // accelerate launch --gradient_accumulation_steps reaches the run under DeepSpeed only
  // (accelerate/utils/launch.py).
  if (run.launch && run.launch->has("launcher:accelerate")) {
    const Setting* launch_steps = run.launch->find(Q::Accumulation);
    const bool engine = run.deepspeed() || run.launch->has("use_deepspeed") ||
                        (run.accelerate && run.accelerate->has("distributed:deepspeed"));
    const bool unknown_file = !run.accelerate && !run.complete;
    if (launch_steps != nullptr && launch_steps->number && *launch_steps->number > 1 && !engine &&
        !unknown_file && run.arguments.find(Q::Accumulation) == nullptr) {
      Finding& f = found.add("silent_override", *launch_steps);
      f.what =
          fmt::format("{} is an option of accelerate launch for DeepSpeed only", spell(*launch_steps, files));
      f.consequence = "without DeepSpeed it is ignored: the script's own default, 1, wins";
      f.fix = "pass it behind the script's name, to the script";
    }
  }
  if (run.accelerate && !run.deepspeed()) {
    const Setting* steps = run.accelerate->find(Q::Accumulation);
    const bool engine = run.accelerate->has("distributed:deepspeed");
    if (steps != nullptr && steps->number && *steps->number > 1 && !engine &&
        run.accumulation().value.value_or(1) != *steps->number) {
      Finding& f = found.add("silent_override", *steps);
      f.what = fmt::format("{} in accelerate's file is read for DeepSpeed only", spell(*steps, files));
      f.consequence = "the script's own number wins";
      f.fix = "Accelerator(gradient_accumulation_steps=...) or the Trainer's argument";
    }
  }
  // Accelerator() without a number replaced the engine's by its default (accelerate before mid-2025).
  if (run.accelerator_call && run.engine && run.accelerator_call->find(Q::Accumulation) == nullptr) {
    const Setting* steps = run.engine->find(Q::Accumulation);
    if (steps != nullptr && steps->number && *steps->number > 1) {
      Finding& f = found.add("silent_override", *steps);
      f.what = fmt::format(
          "{} is in the engine's file, and Accelerator() at {} is built without gradient_accumulation_steps",
          spell(*steps, files), place(run.accelerator_call->file, run.accelerator_call->line, files));
      f.consequence =
          "Accelerator's default, 1, is what accumulate() counts (older releases write it into the engine "
          "too)";
      f.fix = fmt::format("Accelerator(gradient_accumulation_steps={})", steps->written);
    }
  }
  // The deprecated spelling wins over the new one (transformers.TrainingArguments.train_batch_size).
  const Setting* old_name = nullptr;
  const Setting* new_name = nullptr;
  for (const Setting& setting : run.arguments.settings) {
    const std::string key = normal_key(setting.key);
    if (key == "per_gpu_train_batch_size") old_name = &setting;
    if (key == "per_device_train_batch_size") new_name = &setting;
  }
  if (run.trainer() && old_name != nullptr && new_name != nullptr && old_name->number && new_name->number &&
      *old_name->number > 0 && rates_differ(*old_name->number, *new_name->number)) {
    Finding& f = found.add("silent_override", *old_name);
    f.what = fmt::format("{} wins over {}", spell(*old_name, files), spell(*new_name, files));
    f.consequence = fmt::format("each device takes {} examples", old_name->written);
    f.fix = "remove per_gpu_train_batch_size";
  }
  const Setting* steps = run.arguments.find(Q::Accumulation);
  if (steps != nullptr && steps->number && *steps->number > 1) {
    const Setting* optimizer = run.arguments.find(Q::Optimizer);
    const bool layerwise =
        optimizer != nullptr && (optimizer->written.ends_with("_layerwise") ||
                                 normal_key(optimizer->written).find("lomo") != std::string::npos);
    if (run.arguments.has("optimizer_in_backward") || layerwise) {
      Finding& f = found.add("step_in_backward_hook", *steps);
      f.consequence =
          "every micro-batch would be an update: the trainer refuses to start, or nothing accumulates";
    } else if (run.arguments.has("manual_optimization") && run.lightning()) {
      Finding& f = found.add("silent_override", *steps);
      f.what = fmt::format("{} has no effect with manual optimization", spell(*steps, files));
      f.consequence = "the module steps when it wants to: Lightning refuses the combination";
      f.fix = "accumulate in training_step";
    }
  }
}

}  // namespace batchwright::check
