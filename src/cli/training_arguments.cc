#include "cli/training_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "plan/batch_arithmetic.h"

namespace batchwright::cli {
namespace {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool has_placeholder(const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word.find("{micro}") != std::string::npos || word.find("{accum}") != std::string::npos;
  });
}

// CLI11 keeps unknown options for us because words after `--` may look like options; refuse them here.
void refuse_unknown_options(const CLI::App& app, TrainingArguments& arguments) {
  for (const std::string& word : app.remaining()) {
    if (word == "--") {
      arguments.has_command = true;
      continue;
    }
    if (!arguments.has_command && has_placeholder(arguments.words)) {
      throw Error(ErrorKind::Usage, word, "is not an option of this verb", "Put -- before your own command");
    }
    throw unknown_option(app, word, "Its --help lists the options");
  }
}

[[noreturn]] void refuse_without_lora(const std::string& option) {
  throw Error(ErrorKind::Usage, option, "is for LoRA, and the method is full", "Add --lora RANK");
}

void check_micro_tokens(const TrainingArguments& a) {
  if (a.micro_tokens < 1) {
    throw Error(ErrorKind::Usage, "--micro-tokens",
                fmt::format("must be at least 1, and is {}", a.micro_tokens),
                "It is the number of real tokens that a micro-batch is filled to");
  }
  if (!a.split.empty()) {
    throw Error(ErrorKind::Usage, "--micro-tokens", "and --split are two ways to cut the effective batch",
                "Give one of them");
  }
  if (a.options.layout != "auto" && a.options.layout != "packed") {
    throw Error(ErrorKind::Usage, "--micro-tokens",
                fmt::format("packs its micro-batches, and --layout is {}", a.options.layout),
                "Leave --layout out");
  }
}

}  // namespace

void add_training_options(CLI::App& app, TrainingArguments& a) {
  app.allow_extras();
  app.add_option("words", a.words);
  app.add_option("--effective-batch", a.options.effective_batch);
  app.add_option("--split", a.split);
  app.add_option("--micro-tokens", a.micro_tokens);
  app.add_option("--layout", a.options.layout);
  app.add_option("--checkpointing", a.options.checkpointing);
  app.add_option("--method", a.method);
  app.add_option("--lora", a.lora);
  app.add_option("--lora-rank", a.options.lora.rank);
  app.add_option("--lora-alpha", a.options.lora.alpha);
  app.add_option("--lora-dropout", a.options.lora.dropout);
  app.add_option("--lora-targets", a.lora_targets);
  app.add_flag("--lora-rank-stabilised", a.options.lora.rank_stabilised);
  app.add_option("--lora-extra-trained", a.lora_extra_trained);
  app.add_option("--max-length", a.options.max_length);
  app.add_option("--steps", a.options.steps);
  app.add_option("--epochs", a.options.epochs);
  app.add_option("--learning-rate", a.options.learning_rate);
  app.add_option("--warmup-steps", a.options.warmup_steps);
  app.add_option("--schedule", a.schedule);
  app.add_option("--weight-decay", a.options.weight_decay);
  app.add_option("--adam-beta1", a.options.adam_beta1);
  app.add_option("--adam-beta2", a.options.adam_beta2);
  app.add_option("--adam-epsilon", a.options.adam_epsilon);
  app.add_option("--clip", a.options.clip);
  app.add_option("--model-dropout", a.options.model_dropout);
  app.add_option("--seed", a.options.seed);
  app.add_option("--device", a.options.device);
  app.add_option("--precision", a.options.precision);
  app.add_option("--loss-scale", a.options.loss_scale);
  app.add_option("--loss-scale-interval", a.options.loss_scale_interval);
  app.add_option("--threads", a.options.threads);
  app.add_option("--memory-limit", a.memory_limit);
  app.add_option("--eval-fraction", a.options.eval_fraction);
  app.add_option("--task", a.task_name);
  app.add_option("--doc-stride", a.doc_stride);
  app.add_option("--packing", a.packing_name);
  app.add_option("--text-column", a.text_column);
  app.add_option("--text-pair-column", a.text_pair_column);
  app.add_option("--label-column", a.label_column);
  app.add_option("--run", a.run_folder);
  app.add_option("--budget", a.budget);
  app.add_flag("--overwrite", a.overwrite);
  app.add_flag("--json", a.json);
  app.add_flag("--quiet", a.quiet);
}

void finish(const CLI::App& app, TrainingArguments& a) {
  refuse_unknown_options(app, a);
  if (app.count("--effective-batch") == 0) {
    throw Error(ErrorKind::Usage, "--effective-batch", "is missing",
                "It is the number of examples per optimizer step");
  }
  if (!a.method.empty()) a.options.method = run::parse_method(a.method, "--method");
  if (a.lora) {
    if (a.method == "full") throw Error(ErrorKind::Usage, "--lora", "contradicts --method full");
    a.options.method = run::Method::Lora;
    a.options.lora.rank = *a.lora;
  }
  if (a.options.method == run::Method::Full) {
    for (const char* option : {"--lora-rank", "--lora-alpha", "--lora-dropout", "--lora-targets",
                               "--lora-rank-stabilised", "--lora-extra-trained"}) {
      if (app.count(option) > 0) refuse_without_lora(option);
    }
  }
  if (app.count("--learning-rate") == 0 && a.options.method == run::Method::Full) {
    a.options.learning_rate = run::kFullLearningRate;
  }
  if (!a.task_name.empty()) a.task = data::parse_task(a.task_name, "--task");
  if (a.packing_name == "on" || a.packing_name == "off") {
    a.packing = a.packing_name == "on";
  } else if (a.packing_name != "auto") {
    throw Error(ErrorKind::Usage, "--packing", fmt::format("'{}' is not known", a.packing_name),
                "Choose one of auto, on, off");
  }
  if (!a.schedule.empty()) a.options.schedule = run::parse_schedule(a.schedule, "--schedule");
  if (app.count("--lora-targets") > 0) a.options.lora.targets = split_at_commas(a.lora_targets);
  if (!a.lora_extra_trained.empty()) a.options.lora.extra_trained = split_at_commas(a.lora_extra_trained);
  if (!a.memory_limit.empty()) {
    a.options.memory_limit_bytes = parse_bytes(a.memory_limit, "--memory-limit");
    if (a.options.memory_limit_bytes == 0) {
      throw Error(ErrorKind::Usage, "--memory-limit", "is 0", "Leave it out for no limit");
    }
  }
  if (!a.budget.empty()) {
    a.budget_seconds = parse_seconds(a.budget, "--budget");
    if (*a.budget_seconds <= 0) throw Error(ErrorKind::Usage, "--budget", "must be above 0");
  }
  if (app.count("--micro-tokens") > 0) check_micro_tokens(a);
  a.options.check();
  if (!a.split.empty() && a.split != "auto") {
    check_split(split_of(a), a.options.effective_batch);
  }
}

run::Split split_of(const TrainingArguments& arguments) {
  run::Split split = run::parse_split(arguments.split, "--split");
  if (arguments.devices == 0 || split.devices == arguments.devices) return split;
  if (split.devices != 1) {
    throw Error(ErrorKind::Usage, "--devices",
                fmt::format("{} contradicts --split {}, which names {}", arguments.devices, arguments.split,
                            split.devices),
                "Leave one of them out");
  }
  split.devices = arguments.devices;
  return split;
}

ModelAndData model_and_data(const TrainingArguments& arguments, const std::string& verb) {
  if (arguments.has_command || arguments.words.size() != 2) {
    throw Error(ErrorKind::Usage, "batchwright " + verb,
                fmt::format("needs MODEL and DATA, and got {}",
                            arguments.words.empty() ? "neither"
                                                    : fmt::format("'{}'", fmt::join(arguments.words, "' '"))),
                fmt::format("`batchwright {} --help` shows an example", verb));
  }
  return {arguments.words[0], arguments.words[1]};
}

void check_split(const run::Split& split, std::int64_t effective_batch) {
  if (split.effective_batch() == effective_batch) return;
  std::vector<std::string> exact;
  for (const plan::Split& candidate : plan::exact_splits(effective_batch, split.devices)) {
    exact.push_back(plan::to_string(candidate));
  }
  const std::string hint =
      exact.empty() || exact.size() > 12
          ? ""
          : fmt::format("Exact splits of {}: {}", effective_batch, fmt::join(exact, ", "));
  if (split.micro_batch > effective_batch) {
    throw Error(ErrorKind::Usage, "--split",
                fmt::format("micro-batch {} is larger than the effective batch {}", split.micro_batch,
                            effective_batch),
                hint);
  }
  throw Error(
      ErrorKind::Usage, "--split",
      fmt::format("{}{} makes {} examples a step, and the effective batch is {}", run::to_string(split),
                  split.devices > 1 ? " (micro-batch x accumulation x devices)" : "", split.effective_batch(),
                  effective_batch),
      hint);
}

}  // namespace batchwright::cli
