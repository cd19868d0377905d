#include "check/log_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

namespace batchwright::check {
namespace {

using Q = Quantity;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string stem_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::string base = slash == std::string::npos ? path : path.substr(slash + 1);
  return normal_key(base.substr(0, base.find('.')));
}

// Accumulation steps, micro-batch and devices as people write them into names: "accum8", "ga_4", "bs4x8",
// "2gpu".
struct NamedSizes {
  std::optional<double> accumulation, micro_batch, processes;
};

std::optional<double> number_after(const std::string& name, std::string_view word) {
  for (std::size_t at = name.find(word); at != std::string::npos; at = name.find(word, at + 1)) {
    if (at > 0 && std::isalpha(static_cast<unsigned char>(name[at - 1]))) continue;
    std::size_t i = at + word.size();
    while (i < name.size() && (name[i] == '_' || name[i] == '=' || name[i] == ':' || name[i] == ' ')) ++i;
    std::size_t end = i;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
    if (end > i && end - i < 6) return std::stod(name.substr(i, end - i));
  }
  return std::nullopt;
}

NamedSizes sizes_in(const std::string& written) {
  NamedSizes sizes;
  const std::string name = normal_key(written);
  for (const std::string_view word :
       {"gradient_accumulation_steps", "gradient_accumulation", "grad_accumulation", "grad_accum", "grad_acc",
        "gradacc", "accumulation_steps", "accumulation", "accumulate", "accum", "acc", "gas", "ga"}) {
    if (!sizes.accumulation) sizes.accumulation = number_after(name, word);
  }
  for (const std::string_view word :
       {"per_device_train_batch_size", "micro_batch", "micro", "mbs", "mb", "bs", "b"}) {
    if (!sizes.micro_batch) sizes.micro_batch = number_after(name, word);
  }
  for (std::size_t x = name.find('x'); x != std::string::npos && !sizes.accumulation;
       x = name.find('x', x + 1)) {  // 4x8
    std::size_t start = x, end = x + 1;
    while (start > 0 && std::isdigit(static_cast<unsigned char>(name[start - 1]))) --start;
    while (end < name.size() && std::isdigit(static_cast<unsigned char>(name[end]))) ++end;
    if (start == x || end == x + 1 || x - start > 4 || end - x > 5) continue;
    sizes.micro_batch = std::stod(name.substr(start, x - start));
    sizes.accumulation = std::stod(name.substr(x + 1, end - x - 1));
  }
  return sizes;
}

// The configuration that a log belongs to: the only one, or the one whose file stands nearest by folder and
// name.
const Run* run_of(const LogRun& log, const std::vector<Run>& runs, const std::vector<std::string>& files) {
  if (runs.size() == 1) return &runs[0];
  const Run* best = nullptr;
  std::size_t best_score = 0;
  bool tie = false;
  for (const Run& run : runs) {
    const std::string& file = files[run.arguments.file];
    const std::string a = stem_of(file), b = stem_of(files[log.file]);
    std::size_t prefix = 0;
    while (prefix < a.size() && prefix < b.size() && a[prefix] == b[prefix]) ++prefix;
    std::size_t suffix = 0;
    while (suffix < a.size() && suffix < b.size() && a[a.size() - 1 - suffix] == b[b.size() - 1 - suffix])
      ++suffix;
    const std::size_t score = (folder_of(file) == folder_of(files[log.file]) ? 100 : 1) + prefix + suffix;
    if (score == best_score) tie = true;
    if (score > best_score) best = &run, best_score = score, tie = false;
  }
  return tie ? nullptr : best;
}

std::string schedule_family(const std::string& written) {
  const std::string name = normal_key(written);
  if (name.empty()) return "";
  if (name.find("restart") != std::string::npos || name.find("min") != std::string::npos) return "other";
  if (name.find("cosine") != std::string::npos) return "cosine";
  if (name == "linear" || name == "warmupdecaylr" || name == "schedulertype.linear") return "linear";
  if (name.find("constant") != std::string::npos || name == "warmuplr") return "constant";
  return "other";
}

// Vocabularies of model families by a part of their name (tokenizer files of the published models).
std::optional<double> known_vocabulary(const std::string& model) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kVocabularies = {{{"llama_3", 128256},
                                                                                  {"llama3", 128256},
                                                                                  {"llama_2", 32000},
                                                                                  {"llama2", 32000},
                                                                                  {"tinyllama", 32000},
                                                                                  {"mistral", 32000},
                                                                                  {"qwen2", 151936},
                                                                                  {"qwen3", 151936},
                                                                                  {"qwen1.5", 151936},
                                                                                  {"gpt2", 50257},
                                                                                  {"gpt_neo", 50257},
                                                                                  {"pythia", 50304},
                                                                                  {"opt_", 50272},
                                                                                  {"phi_2", 51200},
                                                                                  {"smollm", 49152},
                                                                                  {"gemma", 256000}}};
  for (const auto& [part, size] : kVocabularies) {
    if (model.find(part) != std::string::npos) return size;
  }
  return std::nullopt;
}

void from_log(LoggedRun& run) {
  const auto value = [&](Quantity quantity) -> std::optional<double> {
    const auto found = run.log.declared.find(quantity);
    return found == run.log.declared.end() ? std::nullopt : std::optional(found->second);
  };
  run.micro_batch = value(Q::MicroBatch);
  run.accumulation = value(Q::Accumulation);
  run.processes = value(Q::Processes);
  run.effective_batch = value(Q::GlobalBatch);
  run.examples = value(Q::Examples);
  run.epochs = value(Q::Epochs);
  run.total_steps = value(Q::MaxSteps);
  if (!run.total_steps) run.total_steps = value(Q::ScheduleSteps);
  run.warmup_steps = value(Q::WarmupSteps);
  run.warmup_ratio = value(Q::WarmupRatio);
  run.learning_rate = value(Q::LearningRate);
  run.classes = value(Q::Classes);
  run.vocabulary = value(Q::Vocabulary);
  run.clip = value(Q::Clip);
  if (const auto word = run.log.words.find("schedule"); word != run.log.words.end())
    run.schedule = schedule_family(word->second);
}

void fill(std::optional<double>& slot, const Known& known) {
  if (!slot && known) slot = known.value;
}

void from_configuration(LoggedRun& run, const Run& config) {
  const auto setting = [&](Quantity quantity) -> Known {
    const Setting* found = config.arguments.find(quantity);
    return found == nullptr ? Known{} : Known{found->number, found};
  };
  fill(run.micro_batch, config.micro_batch());
  fill(run.accumulation, config.accumulation());
  fill(run.processes, config.processes());
  fill(run.examples, config.examples());
  fill(run.epochs, config.epochs());
  fill(run.total_steps, config.max_steps());
  if (!run.warmup_ratio) fill(run.warmup_steps, setting(Q::WarmupSteps));
  fill(run.warmup_ratio, setting(Q::WarmupRatio));
  fill(run.learning_rate, setting(Q::LearningRate));
  fill(run.clip, setting(Q::Clip));
  fill(run.classes, setting(Q::Classes));
  fill(run.vocabulary, setting(Q::Vocabulary));
  if (const Setting* asked = config.arguments.find(Q::Epochs)) run.epochs_asked = asked->number;
  if (const Known steps = config.max_steps(); steps) run.max_steps_asked = steps.value;
  if (const Setting* type = config.arguments.find(Q::ScheduleType); type != nullptr && run.schedule.empty())
    run.schedule = schedule_family(type->written);
  // The Trainer's default schedule (transformers.TrainingArguments.lr_scheduler_type).
  if (run.schedule.empty() && config.trainer() && config.complete &&
      config.arguments.tool == Tool::Transformers && !config.deepspeed())
    run.schedule = "linear";
  if (run.schedule == "linear" && config.trainer() && !run.warmup_steps && !run.warmup_ratio &&
      config.complete)
    run.warmup_steps = 0;
  if (const Setting* half = config.arguments.find(Q::Fp16)) run.fp16 = normal_key(half->written) == "true";
  run.from_scratch = config.arguments.has("from_scratch");
  const Setting* model = config.arguments.find(Q::ModelName);
  const std::string name = model == nullptr ? "" : normal_key(model->written);
  const std::string program = normal_key(config.arguments.program);
  const bool sft = std::any_of(config.arguments.marks.begin(), config.arguments.marks.end(),
                               [](const std::string& mark) { return mark == "call:SFTConfig"; });
  if (!run.classes) {
    if (!run.vocabulary) run.vocabulary = known_vocabulary(name);
    run.language_model = run.vocabulary || sft || config.arguments.tool == Tool::Axolotl ||
                         program.find("clm") != std::string::npos || program.find("sft") != std::string::npos;
  }
}

void from_name(LoggedRun& run) {
  const NamedSizes sizes = sizes_in(run.log.name.substr(
      run.log.name.find_last_of('/') == std::string::npos ? 0 : run.log.name.find_last_of('/') + 1));
  if (!run.accumulation) run.accumulation = sizes.accumulation;
  if (!run.micro_batch) run.micro_batch = sizes.micro_batch;
}

void finish(LoggedRun& run, const LogHints& hints) {
  if (hints.classes) run.classes = hints.classes;
  if (hints.vocabulary && !hints.classes) run.vocabulary = hints.vocabulary;
  if (run.vocabulary && !run.classes) run.language_model = true;
  if (!run.effective_batch && run.micro_batch && run.accumulation && run.processes)
    run.effective_batch = *run.micro_batch * *run.accumulation * *run.processes;
  if (!run.processes && run.effective_batch && run.micro_batch && run.accumulation)
    run.processes = *run.effective_batch / (*run.micro_batch * *run.accumulation);
  run.from_scratch = run.from_scratch || hints.from_scratch;
  // An evaluation at ln(vocabulary) before or early in training: the weights know nothing yet.
  if (run.vocabulary && !run.log.evals.empty() &&
      within_factor(run.log.evals.front().eval_loss, std::log(*run.vocabulary), 0.06))
    run.from_scratch = true;
}

void compare(const std::vector<LoggedRun>& runs, FindingList& found) {
  if (runs.size() < 2 || runs.size() > 12) return;
  const bool all_known =
      std::all_of(runs.begin(), runs.end(), [](const LoggedRun& r) { return r.accumulation.has_value(); });
  std::size_t plain = 0;
  const auto is_reference = [](const LoggedRun& run) {
    const std::string name = normal_key(run.log.name);
    return name.find("base") != std::string::npos || name.find("ref") != std::string::npos ||
           name.find("plain") != std::string::npos || name.find("no_acc") != std::string::npos ||
           name.find("full") != std::string::npos || name.find("single") != std::string::npos;
  };
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (all_known ? *runs[i].accumulation < *runs[plain].accumulation
                  : is_reference(runs[i]) && !is_reference(runs[plain]))
      plain = i;
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i != plain) check_pair(runs[plain], runs[i], found);
  }
}

}  // namespace

LogResult check_logs(const std::vector<LogText>& logs, const std::vector<Run>& runs,
                     const std::vector<std::string>& files, const LogHints& hints) {
  LogResult result;
  result.records.resize(files.size());
  result.summaries.resize(files.size());
  FindingList found;
  std::vector<LoggedRun> all;
  for (const LogText& log : logs) {
    check_messages(log, found);
    const std::vector<TableRow> rows = read_comparison_tables(log);
    result.records[log.file] += rows.size();
    check_comparison(rows, log.file, found);
    for (LogRun& read : read_logs(log)) {
      LoggedRun run;
      run.log = std::move(read);
      from_log(run);
      from_name(run);
      if (const Run* config = run_of(run.log, runs, files)) from_configuration(run, *config);
      finish(run, hints);
      result.records[log.file] += run.log.train.size() + run.log.evals.size();
      all.push_back(std::move(run));
    }
  }
  using Check = void (*)(const LoggedRun&, FindingList&);
  constexpr Check kChecks[] = {check_schedule,        check_first_loss,  check_against_evaluation,
                               check_steps_per_epoch, check_epochs_made, check_epoch_edges,
                               check_gradient_norms};
  for (const LoggedRun& run : all) {
    for (const Check check : kChecks) check(run, found);
    result.summaries[run.log.file] = fmt::format("{} records of training, {} of evaluation: no fault shows",
                                                 run.log.train.size(), run.log.evals.size());
  }
  compare(all, found);
  result.findings = found.take();
  return result;
}

}  // namespace batchwright::check
