#include "check/config_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>

#include "check/roles.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

struct KeyMeaning {
  std::string_view key;  // normalised
  Quantity quantity;
};

// Names that mean the same wherever they are written.
constexpr KeyMeaning kShared[] = {
    {"per_device_train_batch_size", Q::MicroBatch},
    {"per_device_batch_size", Q::MicroBatch},
    {"per_gpu_train_batch_size", Q::MicroBatch},
    {"per_gpu_batch_size", Q::MicroBatch},
    {"batch_size_per_gpu", Q::MicroBatch},
    {"batch_size_per_device", Q::MicroBatch},
    {"micro_batch_size", Q::MicroBatch},
    {"micro_batch_size_per_gpu", Q::MicroBatch},
    {"microbatch_size", Q::MicroBatch},
    {"micro_train_batch_size", Q::MicroBatch},
    {"device_train_microbatch_size", Q::MicroBatch},
    {"train_micro_batch_size_per_gpu", Q::MicroBatch},
    {"local_batch_size", Q::MicroBatch},
    {"mini_batch_size", Q::MicroBatch},
    {"gradient_accumulation_steps", Q::Accumulation},
    {"gradient_accumulation", Q::Accumulation},
    {"gradient_accumulation_iters", Q::Accumulation},
    {"grad_accumulation_steps", Q::Accumulation},
    {"grad_accum_steps", Q::Accumulation},
    {"grad_accum", Q::Accumulation},
    {"grad_acc_steps", Q::Accumulation},
    {"grad_acc", Q::Accumulation},
    {"gradient_acc_steps", Q::Accumulation},
    {"accumulate_grad_batches", Q::Accumulation},
    {"accumulation_steps", Q::Accumulation},
    {"accum_steps", Q::Accumulation},
    {"accum_iter", Q::Accumulation},
    {"accumulate", Q::Accumulation},
    {"ga_steps", Q::Accumulation},
    {"global_batch_size", Q::GlobalBatch},
    {"global_train_batch_size", Q::GlobalBatch},
    {"total_batch_size", Q::GlobalBatch},
    {"total_train_batch_size", Q::GlobalBatch},
    {"effective_batch_size", Q::GlobalBatch},
    {"target_batch_size", Q::GlobalBatch},
    {"global_batch", Q::GlobalBatch},
    {"total_batch", Q::GlobalBatch},
    {"effective_batch", Q::GlobalBatch},
    {"global_bs", Q::GlobalBatch},
    {"global_bsz", Q::GlobalBatch},
    {"world_size", Q::Processes},
    {"num_processes", Q::Processes},
    {"num_gpus", Q::Processes},
    {"n_gpus", Q::Processes},
    {"ngpus", Q::Processes},
    {"n_gpu", Q::Processes},
    {"num_devices", Q::Processes},
    {"nproc_per_node", Q::ProcessesPerNode},
    {"gpus_per_node", Q::ProcessesPerNode},
    {"n_gpus_per_node", Q::ProcessesPerNode},
    {"num_gpus_per_node", Q::ProcessesPerNode},
    {"devices_per_node", Q::ProcessesPerNode},
    {"nnodes", Q::Nodes},
    {"num_nodes", Q::Nodes},
    {"tensor_model_parallel_size", Q::ModelParallel},
    {"pipeline_model_parallel_size", Q::ModelParallel},
    {"tensor_parallel_size", Q::ModelParallel},
    {"pipeline_parallel_size", Q::ModelParallel},
    {"tensor_parallel_degree", Q::ModelParallel},
    {"pipeline_parallel_degree", Q::ModelParallel},
    {"model_parallel_size", Q::ModelParallel},
    {"pipe_parallel_size", Q::ModelParallel},
    {"context_parallel_size", Q::ModelParallel},
    {"sequence_parallel_size", Q::ModelParallel},
    {"sequence_parallel_degree", Q::ModelParallel},
    {"tp_size", Q::ModelParallel},
    {"pp_size", Q::ModelParallel},
    {"cp_size", Q::ModelParallel},
    {"max_steps", Q::MaxSteps},
    {"max_train_steps", Q::MaxSteps},
    {"train_steps", Q::MaxSteps},
    {"train_iters", Q::MaxSteps},
    {"max_iters", Q::MaxSteps},
    {"num_train_steps", Q::MaxSteps},
    {"num_train_epochs", Q::Epochs},
    {"num_epochs", Q::Epochs},
    {"max_epochs", Q::Epochs},
    {"epochs", Q::Epochs},
    {"warmup_steps", Q::WarmupSteps},
    {"num_warmup_steps", Q::WarmupSteps},
    {"lr_warmup_steps", Q::WarmupSteps},
    {"lr_warmup_iters", Q::WarmupSteps},
    {"warmup_iters", Q::WarmupSteps},
    {"warmup_num_steps", Q::WarmupSteps},
    {"warmup_ratio", Q::WarmupRatio},
    {"lr_warmup_fraction", Q::WarmupRatio},
    {"learning_rate", Q::LearningRate},
    {"lr", Q::LearningRate},
    {"max_grad_norm", Q::Clip},
    {"gradient_clipping", Q::Clip},
    {"gradient_clip_val", Q::Clip},
    {"clip_grad_norm", Q::Clip},
    {"clip_grad", Q::Clip},
    {"grad_clip", Q::Clip},
    {"total_num_steps", Q::ScheduleSteps},
    {"num_training_steps", Q::ScheduleSteps},
    {"total_steps", Q::ScheduleSteps},
    {"lr_decay_iters", Q::ScheduleSteps},
    {"lr_decay_steps", Q::ScheduleSteps},
    {"decay_steps", Q::ScheduleSteps},
    {"t_max", Q::ScheduleSteps},
    {"num_examples", Q::Examples},
    {"examples", Q::Examples},
    {"num_train_examples", Q::Examples},
    {"num_samples", Q::Examples},
    {"num_train_samples", Q::Examples},
    {"train_examples", Q::Examples},
    {"train_samples", Q::Examples},
    {"dataset_size", Q::Examples},
    {"train_size", Q::Examples},
    {"train_dataset_size", Q::Examples},
    {"num_rows", Q::Examples},
    {"n_examples", Q::Examples},
    {"n_samples", Q::Examples},
    {"max_train_samples", Q::ExamplesAtMost},
    {"max_samples", Q::ExamplesAtMost},
    {"num_generations", Q::GroupSize},
    {"lr_scheduler_type", Q::ScheduleType},
    {"lr_scheduler", Q::ScheduleType},
    {"lr_scheduler_name", Q::ScheduleType},
    {"lr_decay_style", Q::ScheduleType},
    {"optim", Q::Optimizer},
    {"optimizer", Q::Optimizer},
    {"loss", Q::LossName},
    {"loss_type", Q::LossName},
    {"loss_fn", Q::LossName},
    {"loss_name", Q::LossName},
    {"loss_function", Q::LossName},
    {"criterion", Q::LossName},
    {"objective", Q::LossName},
    {"model_name_or_path", Q::ModelName},
    {"base_model", Q::ModelName},
    {"model_name", Q::ModelName},
    {"model", Q::ModelName},
    {"backbone", Q::ModelName},
    {"arch", Q::ModelName},
    {"num_labels", Q::Classes},
    {"num_classes", Q::Classes},
    {"n_classes", Q::Classes},
    {"vocab_size", Q::Vocabulary},
    {"padded_vocab_size", Q::Vocabulary},
    {"fp16", Q::Fp16},
    {"bf16", Q::Bf16},
};

// "batch_size" alone differs by tool; so do "devices" and train_batch_size.
std::optional<Quantity> tool_quantity(Tool tool, std::string_view key) {
  const bool engine = tool == Tool::DeepSpeed || tool == Tool::DeepSpeedPlugin;
  if (key == "train_batch_size") {
    if (engine || tool == Tool::Generic) return Q::GlobalBatch;
    return tool == Tool::Lightning || tool == Tool::Transformers ? std::optional(Q::MicroBatch)
                                                                 : std::nullopt;
  }
  if (key == "batch_size") {
    if (tool == Tool::Axolotl) return Q::GlobalBatch;
    return engine ? std::nullopt : std::optional(Q::MicroBatch);
  }
  if (key == "devices" || key == "gpus") return Q::ProcessesPerNode;
  if (key == "num_machines") return Q::Nodes;
  if (key == "nproc" || key == "gpu_count") return Q::Processes;
  return std::nullopt;
}

}  // namespace

std::optional<Quantity> quantity_of(Tool tool, std::string_view key) {
  const std::string name = normal_key(key);
  if (const auto own = tool_quantity(tool, name)) return own;
  for (const KeyMeaning& meaning : kShared) {
    if (meaning.key == name) return meaning.quantity;
  }
  return std::nullopt;
}

std::string_view tool_name(Tool tool) {
  constexpr std::array<std::string_view, 9> kNames = {
      "Transformers", "LLaMA-Factory", "Axolotl",
      "Accelerate",   "DeepSpeed",     "Accelerate's DeepSpeed block",
      "Lightning",    "the launcher",  "the configuration"};
  return kNames[static_cast<std::size_t>(tool)];
}

std::string_view quantity_name(Quantity quantity) {
  switch (quantity) {
    case Q::MicroBatch:
      return "micro-batch size";
    case Q::Accumulation:
      return "accumulation steps";
    case Q::GlobalBatch:
      return "global batch";
    case Q::Processes:
      return "world size";
    case Q::ProcessesPerNode:
      return "devices per node";
    case Q::Nodes:
      return "number of nodes";
    case Q::ModelParallel:
      return "model-parallel size";
    case Q::MaxSteps:
      return "number of optimizer steps";
    case Q::Epochs:
      return "number of epochs";
    case Q::WarmupSteps:
      return "warm-up steps";
    case Q::WarmupRatio:
      return "warm-up ratio";
    case Q::LearningRate:
      return "learning rate";
    case Q::Clip:
      return "gradient-norm limit";
    case Q::ScheduleSteps:
      return "schedule length";
    case Q::SchedulePeak:
      return "peak learning rate of the schedule";
    case Q::Fp16:
      return "fp16 switch";
    case Q::Bf16:
      return "bf16 switch";
    default:
      return "value";
  }
}

const Setting* Section::find(Quantity quantity) const {
  const Setting* found = nullptr;
  for (const Setting& setting : settings) {
    if (setting.quantity == quantity) found = &setting;
  }
  return found;
}

std::optional<double> Section::number(Quantity quantity) const {
  const Setting* setting = find(quantity);
  return setting == nullptr ? std::nullopt : setting->number;
}

bool Section::has(std::string_view mark) const {
  return std::find(marks.begin(), marks.end(), mark) != marks.end();
}

bool add_setting(Section& section, std::string_view key, const ConfigNode& value) {
  if (value.kind == ConfigNode::Kind::Map || value.kind == ConfigNode::Kind::Null) return false;
  const std::optional<Quantity> quantity = quantity_of(section.tool, key);
  if (!quantity) return false;
  Setting setting{
      .quantity = *quantity, .key = std::string(key), .written = value.text, .number = value.number()};
  if (value.kind == ConfigNode::Kind::List) {  // Lightning's devices: [0, 1, 2]
    if (*quantity != Q::ProcessesPerNode) return false;
    setting.number = static_cast<double>(value.list.size());
    setting.written = std::to_string(value.list.size());
  }
  setting.is_auto = normal_key(value.text) == "auto";
  setting.quoted = value.quoted;
  setting.line = value.line;
  setting.file = section.file;
  section.settings.push_back(std::move(setting));
  return true;
}

std::vector<Setting> settings_in_comments(std::string_view text, std::size_t file) {
  // Only what stands behind a comment sign, or a "key": value that documents (a JSON "_comment").
  static const std::regex count(
      R"((?:^|[^A-Za-z0-9_.])([0-9][0-9,_]*(?:\.[0-9]+)?\s?[kKM]?)\s*(?:training\s+|train\s+|labell?ed\s+)?(examples?|samples?|rows?|pairs?|sentences?|instances?|conversations?|dialogues?|documents?|images?|gpus?|epochs?)\b)",
      std::regex::icase | std::regex::optimize);
  static const std::regex batch(
      R"((?:effective|global|total)(?:[ _]train)?[ _-]batch(?:[ _-]size)?[^0-9\n]{0,24}([0-9][0-9,]*(?:\s*[*x×]\s*[0-9]+[^=\n]{0,20})*)(?:[^=\n]{0,24}=\s*([0-9][0-9,]*))?)",
      std::regex::icase | std::regex::optimize);
  std::vector<Setting> found;
  std::size_t start = 0;
  int line = 0;
  while (start < text.size() && line < 2000) {
    std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) end = text.size();
    ++line;
    std::string_view row = text.substr(start, std::min<std::size_t>(end - start, 400));
    start = end + 1;
    std::size_t sign = row.find('#');
    if (sign == std::string_view::npos) sign = row.find("//");
    if (sign == std::string_view::npos) sign = row.find("_comment");
    if (sign == std::string_view::npos) continue;
    const std::string comment(row.substr(sign));
    // The expressions cost more than the rest of reading a file: most comments have no number.
    if (comment.find_first_of("0123456789") == std::string::npos) continue;
    const std::string words = lower(comment);
    std::smatch match;
    if (words.find("batch") != std::string::npos && std::regex_search(comment, match, batch)) {
      // "8 x 4 = 32" ends with the total, "32 = 8 x 4" begins with it.
      static const std::regex factor(R"(^\s*[*x×]\s*[0-9])", std::regex::optimize);
      const bool ends_with_total = match[2].matched && !std::regex_search(match.suffix().str(), factor);
      const std::string total = ends_with_total ? match[2].str() : match[1].str();
      if (const auto number = parse_number(total); number && *number > 0) {
        found.push_back({.quantity = Quantity::GlobalBatch,
                         .key = "comment",
                         .written = match[0].str(),
                         .number = number,
                         .line = line,
                         .file = file});
      }
    }
    if (!contains_any(words, {"example", "sample", "row", "pair", "sentence", "instance", "conversation",
                              "dialogue", "document", "image", "gpu", "epoch"}))
      continue;
    for (std::sregex_iterator it(comment.begin(), comment.end(), count), none; it != none; ++it) {
      std::string digits = (*it)[1].str();
      digits.erase(std::remove(digits.begin(), digits.end(), ' '), digits.end());
      const std::optional<double> number = parse_number(digits);
      if (!number || *number < 1) continue;
      std::string unit = normal_key((*it)[2].str());
      const Quantity quantity = unit.starts_with("gpu")     ? Q::Processes
                                : unit.starts_with("epoch") ? Q::Epochs
                                                            : Q::Examples;
      // "8 examples per step" describes a batch, not the data.
      const std::string rest = normal_key(it->suffix().str().substr(0, 24));
      if (quantity == Q::Examples &&
          (rest.find("per ") != std::string::npos || rest.find("/") == 0 || *number < 100))
        continue;
      found.push_back({.quantity = quantity,
                       .key = "comment",
                       .written = (*it)[0].str(),
                       .number = number,
                       .line = line,
                       .file = file});
    }
  }
  return found;
}

}  // namespace batchwright::check
