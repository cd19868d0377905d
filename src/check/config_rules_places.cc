#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/config_rules.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

const Setting* setting_of(const std::optional<Section>& section, Quantity quantity) {
  return section ? section->find(quantity) : nullptr;
}

bool differ(double a, double b) { return std::abs(a - b) > 1e-9 * std::max(std::abs(a), std::abs(b)); }

// What the Trainer compares with DeepSpeed's file (transformers/integrations/deepspeed.py, fill_match): the
// pair and the value it takes when the argument is not written.
struct Compared {
  Quantity engine, argument;
  double fallback;
};
constexpr Compared kCompared[] = {{Q::MicroBatch, Q::MicroBatch, 8},
                                  {Q::Accumulation, Q::Accumulation, 1},
                                  {Q::Clip, Q::Clip, 1},
                                  {Q::WarmupSteps, Q::WarmupSteps, 0},
                                  {Q::ScheduleSteps, Q::MaxSteps, -1}};

void refused_by_trainer(const Run& run, const Compared& pair, const std::vector<std::string>& files,
                        FindingList& found) {
  const Setting* engine = setting_of(run.engine, pair.engine);
  if (engine == nullptr || engine->is_auto || !engine->number || engine->quoted) return;
  const Setting* argument = run.arguments.find(pair.argument);
  if (argument != nullptr && !argument->number) return;
  if (argument == nullptr && (!run.complete || run.arguments.tool == Tool::Axolotl || pair.fallback < 0))
    return;
  if (pair.engine == Q::WarmupSteps) {
    const Setting* ratio = run.arguments.find(Q::WarmupRatio);
    const bool by_ratio = ratio != nullptr && ratio->number.value_or(1) != 0 &&
                          (argument == nullptr || argument->number == 0.0);
    if (by_ratio) return;  // warmup_steps then follow from the total, which is not known here
  }
  if (pair.argument == Q::MaxSteps && *argument->number <= 0) return;
  const double value = argument != nullptr ? *argument->number : pair.fallback;
  if (!differ(*engine->number, value)) return;
  Finding& f = found.add("two_places", *engine);
  f.what =
      fmt::format("{} is {} in {}, and {} in the arguments{}", quantity_name(pair.engine), engine->written,
                  files[engine->file], spell(value),
                  argument == nullptr ? " (the Trainer's default)"
                                      : fmt::format(" ({})", place(argument->file, argument->line, files)));
  f.consequence = "the Trainer compares the two and refuses to start";
  f.fix =
      fmt::format("\"{}\": \"auto\"", engine->key.substr(engine->key.find_last_of('.') == std::string::npos
                                                             ? 0
                                                             : engine->key.find_last_of('.') + 1));
  found.correct(*engine, "\"auto\"");
}

bool is_on(const Setting& setting) {
  const std::string written = normal_key(setting.written);
  return !setting.is_auto && (written == "true" || written == "1" || written == "yes" || written == "on");
}

// TrainingArguments.__post_init__ and DeepSpeed's config refuse both; so do the tools built on them.
void two_precisions(const Section& section, FindingList& found) {
  const Setting* half = section.find(Q::Fp16);
  const Setting* brain = section.find(Q::Bf16);
  if (half == nullptr || brain == nullptr || !is_on(*half) || !is_on(*brain)) return;
  Finding& f = found.add("two_places", *(half->line >= brain->line ? half : brain));
  f.what = fmt::format("{} and {} are both on", half->key, brain->key);
  f.consequence = "one training has one 16-bit type: the start is refused, or one of the two is ignored";
  f.fix = "keep bf16 where the device has it, else fp16";
}

void precision_switch(const Run& run, Quantity half, const std::vector<std::string>& files,
                      FindingList& found) {
  const Setting* engine = setting_of(run.engine, half);
  if (engine == nullptr || engine->is_auto || !run.complete) return;
  if (run.arguments.tool == Tool::Axolotl || run.arguments.settings.front().key.empty()) return;
  const auto readable = [](const Setting& s) {
    const std::string w = normal_key(s.written);
    return w == "true" || w == "false" || w == "1" || w == "0" || w == "yes" || w == "no";
  };
  const Setting* argument = run.arguments.find(half);
  if (argument != nullptr && !readable(*argument)) return;
  const bool wanted = argument != nullptr && is_on(*argument);
  if (is_on(*engine) == wanted || (argument == nullptr && !run.from_command)) return;
  Finding& f = found.add("two_places", *engine);
  f.what = fmt::format("{} is {} in {}, and {} in the arguments", engine->key, engine->written,
                       files[engine->file], wanted ? "on" : "off");
  f.consequence = "the Trainer compares the two and refuses to start";
  f.fix = "\"enabled\": \"auto\"";
  found.correct(*engine, "\"auto\"");
}

// Lightning writes accumulation itself and refuses a file that has it; a file's clipping wins over the
// Trainer's (lightning/pytorch/strategies/deepspeed.py, _format_batch_size_and_grad_accum_config).
void lightning_engine(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  if (!run.lightning() || !run.engine) return;
  if (const Setting* steps = run.engine->find(Q::Accumulation); steps != nullptr) {
    Finding& f = found.add("two_places", *steps);
    f.what = fmt::format("{} sets gradient_accumulation_steps beside Lightning's accumulate_grad_batches",
                         files[steps->file]);
    f.consequence = "Lightning refuses: accumulation belongs to accumulate_grad_batches only";
    f.fix = "remove the line and set accumulate_grad_batches";
  }
  const Setting* engine = run.engine->find(Q::Clip);
  const Setting* trainer = run.arguments.find(Q::Clip);
  if (engine != nullptr && trainer != nullptr && engine->number && trainer->number &&
      differ(*engine->number, *trainer->number)) {
    Finding& f = found.add("two_places", *engine);
    f.what = fmt::format("gradient clipping is {} in {} and {} in the Trainer", engine->written,
                         files[engine->file], spell(*trainer, files));
    f.consequence = "the engine's value wins silently";
    f.fix = "set gradient_clip_val only";
  }
  const Setting* micro = run.engine->find(Q::MicroBatch);
  const Setting* loader = run.arguments.find(Q::MicroBatch);
  if (micro != nullptr && loader != nullptr && micro->number && loader->number &&
      differ(*micro->number, *loader->number)) {
    Finding& f = found.add("two_places", *micro);
    f.what = fmt::format("the micro-batch is {} in {} and {} in the data loader", micro->written,
                         files[micro->file], spell(*loader, files));
    f.consequence = "the loader's batches are what is trained; DeepSpeed's sizes are wrong";
    f.fix = "remove train_micro_batch_size_per_gpu: Lightning takes it from the loader";
  }
}

// A command that passes another value than the file it reads: one wins silently, and which depends on the
// script.
void command_against_file(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  if (!run.from_command) return;
  for (const Quantity quantity :
       {Q::MicroBatch, Q::Accumulation, Q::GlobalBatch, Q::MaxSteps, Q::WarmupSteps, Q::LearningRate}) {
    const Setting* winner = run.arguments.find(quantity);
    if (winner == nullptr || !winner->number) continue;
    for (const Setting& other : run.arguments.settings) {
      if (other.quantity != quantity || !other.number || other.file == winner->file ||
          !differ(*other.number, *winner->number))
        continue;
      Finding& f = found.add("two_places", *winner);
      f.what = fmt::format("{} is {} here and {} in {}", quantity_name(quantity), winner->written,
                           other.written, place(other.file, other.line, files));
      f.consequence = "one of the two wins silently";
      f.fix = "keep it in one place";
      break;
    }
  }
}

}  // namespace

void check_two_places(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  two_precisions(run.arguments, found);
  if (run.engine) two_precisions(*run.engine, found);
  if (run.plugin) two_precisions(*run.plugin, found);
  lightning_engine(run, files, found);
  command_against_file(run, files, found);
  if (run.engine && run.trainer() && run.has_arguments()) {
    for (const Compared& pair : kCompared) refused_by_trainer(run, pair, files, found);
    precision_switch(run, Q::Fp16, files, found);
    precision_switch(run, Q::Bf16, files, found);
  }
  // accelerate's block: clipping there is a number of its own, compared like the file's.
  const Setting* block = setting_of(run.plugin, Q::Clip);
  const Setting* argument = run.arguments.find(Q::Clip);
  if (block != nullptr && block->number && argument != nullptr && argument->number &&
      differ(*block->number, *argument->number)) {
    Finding& f = found.add("two_places", *block);
    f.what =
        fmt::format("the gradient-norm limit is {} here and {}", block->written, spell(*argument, files));
    f.consequence =
        run.trainer() ? "the Trainer compares the two and refuses to start" : "the engine's value wins";
    f.fix = "the same number in both";
  }
  // A DeepSpeed file and accelerate's own keys: accelerate refuses keys that stand in both (launch with
  // deepspeed_config_file takes them from the file only).
  if (run.plugin && run.plugin->has("config_file") && run.engine) {
    for (const Quantity quantity : {Q::Accumulation, Q::Clip}) {
      const Setting* here = run.plugin->find(quantity);
      const Setting* there = run.engine->find(quantity);
      if (here == nullptr || !here->number || there == nullptr || !there->number ||
          !differ(*here->number, *there->number))
        continue;
      Finding& f = found.add("two_places", *here);
      f.what = fmt::format("{} is {} here and {} in {}", quantity_name(quantity), here->written,
                           there->written, files[there->file]);
      f.consequence = "with deepspeed_config_file the file's value wins";
      f.fix = "remove the line here";
    }
  }
  // Axolotl takes the batch by one of two ways and refuses both (its configuration's validators).
  if (run.arguments.tool == Tool::Axolotl && run.arguments.find(Q::GlobalBatch) != nullptr &&
      run.arguments.find(Q::Accumulation) != nullptr) {
    Finding& f = found.add("two_places", *run.arguments.find(Q::GlobalBatch));
    f.what = "batch_size and gradient_accumulation_steps are both set";
    f.consequence = "Axolotl refuses: each determines the other";
    f.fix = "keep gradient_accumulation_steps";
  }
}

void check_types(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const auto check = [&](const Section& section) {
    for (const Setting& setting : section.settings) {
      if (!setting.quoted || !setting.number || setting.is_auto) continue;
      if (setting.quantity >= Q::ScheduleType || setting.quantity == Q::Examples ||
          setting.quantity == Q::ExamplesAtMost)
        continue;
      Finding& f = found.add("type_error", setting);
      f.what = fmt::format("{} is the string \"{}\"", setting.key, setting.written);
      f.consequence = section.tool == Tool::DeepSpeed
                          ? "it never equals the number in the arguments: the start is refused with a "
                            "message that shows two equal values"
                          : "arithmetic or comparison with it fails when training starts";
      f.fix = fmt::format("write {} without quotes", setting.written);
      found.correct(setting, setting.written);
    }
  };
  if (run.engine) check(*run.engine);
  const bool no_conversion =
      run.arguments.tool == Tool::Transformers || run.arguments.tool == Tool::LlamaFactory;
  if (no_conversion) check(run.arguments);
  (void)files;
}

void check_clipping(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* wanted = run.arguments.find(Q::Clip);
  if (wanted != nullptr && wanted->number && *wanted->number > 0) {
    if (run.engine && run.engine->find(Q::Clip) == nullptr && !run.lightning()) {
      Finding& f = found.add("clipping_ignored", *wanted);
      f.what = fmt::format("{} is set, and {} has no gradient_clipping", spell(*wanted, files),
                           files[run.engine->file]);
      f.consequence = "under DeepSpeed only the engine clips: gradients are not clipped at all";
      f.fix = fmt::format("\"gradient_clipping\": {} in {}", run.trainer() ? "\"auto\"" : wanted->written,
                          files[run.engine->file]);
    } else if (run.plugin && !run.engine && !run.plugin->has("config_file") &&
               run.plugin->find(Q::Clip) == nullptr && !run.trainer() && *wanted->number != 1) {
      Finding& f = found.add("clipping_ignored", *wanted);
      f.what = fmt::format("{} is set, and accelerate's DeepSpeed block has no gradient_clipping",
                           spell(*wanted, files));
      f.consequence = "clip_grad_norm_ does nothing under DeepSpeed: the engine clips at its default, 1.0";
      f.fix = fmt::format("gradient_clipping: {} in {}", wanted->written, files[run.plugin->file]);
    } else if (run.arguments.has("manual_optimization")) {
      Finding& f = found.add("clipping_ignored", *wanted);
      f.what = fmt::format("{} is set with manual optimization", spell(*wanted, files));
      f.consequence = "the Trainer does not clip (Lightning refuses to start)";
      f.fix = "call self.clip_gradients(...) in training_step";
    } else if (run.arguments.has("optimizer_in_backward")) {
      Finding& f = found.add("clipping_ignored", *wanted);
      f.what = fmt::format("{} is set with an optimizer that steps inside backward", spell(*wanted, files));
      f.consequence = "there is no moment at which all gradients exist: nothing can clip them";
      f.fix = "optimizer_in_bwd: false";
    }
  }
}

}  // namespace batchwright::check
