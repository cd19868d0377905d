#include <algorithm>
#include <array>
#include <set>

#include "check/config_read.h"

namespace batchwright::check {
namespace {

using Q = Quantity;
using Kind = ConfigNode::Kind;

constexpr int kMaxWalkDepth = 12;

bool has_any(const ConfigNode& node, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](std::string_view key) { return node.find(key) != nullptr; });
}

bool is_deepspeed(const ConfigNode& node) {
  const ConfigNode* zero = node.find("zero_optimization");
  if (zero != nullptr && zero->kind == Kind::Map) return true;
  if (has_any(node, {"train_micro_batch_size_per_gpu", "zero_allow_untested_optimizer"})) return true;
  const ConfigNode* fp16 = node.find("fp16");
  const bool engine_words = has_any(node, {"steps_per_print", "wall_clock_breakdown", "gradient_clipping"}) ||
                            (fp16 != nullptr && fp16->kind == Kind::Map);
  return engine_words && has_any(node, {"train_batch_size", "gradient_accumulation_steps"}) &&
         !has_any(node, {"per_device_train_batch_size"});
}

bool is_accelerate(const ConfigNode& node) {
  return has_any(node, {"compute_environment", "distributed_type"}) ||
         (has_any(node, {"num_machines"}) && has_any(node, {"num_processes"}));
}

bool is_command(std::string_view text) {
  if (text.size() < 12) return false;
  for (const std::string_view word : {"torchrun ", "accelerate launch", "deepspeed ", "python ", "python3 ",
                                      "mpirun ", "srun ", "llamafactory-cli "}) {
    if (text.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// Subtrees whose batch sizes and steps are not those of training.
bool is_other_phase(std::string_view key) {
  const std::string name = normal_key(key);
  for (const std::string_view prefix :
       {"eval", "val", "test", "predict", "generat", "infer", "sampling", "rollout", "critic", "ref"}) {
    if (name.starts_with(prefix) && name != "validate_every") return true;
  }
  return false;
}

class TreeReader {
 public:
  TreeReader(std::size_t file, const std::string& file_name) : file_(file), file_name_(file_name) {}

  std::vector<Section> run(const ConfigNode& root) {
    if (root.kind == Kind::List) {
      for (const ConfigNode& document : root.list) read_document(document);
    } else {
      read_document(root);
    }
    return std::move(sections_);
  }

 private:
  void read_document(const ConfigNode& root) {
    if (root.kind != Kind::Map) return;
    Section main;
    main.file = file_;
    main.line = root.line;
    main.tool = tool_of(root);
    main.marks.push_back("document");
    walk(root, main, 0);
    if (has_any(root, {"token_file"}) && has_any(root, {"split"}) && has_any(root, {"options"}))
      own_job(root, main);
    drop_ambiguous(main);
    if (!main.settings.empty() || !main.references.empty() || main.marks.size() > 1)
      sections_.push_back(std::move(main));
  }

  // A run folder's job.json: {"split": "8x4x2", "options": {"steps", "schedule", ...}}.
  static void own_job(const ConfigNode& root, Section& main) {
    const ConfigNode& split = *root.find("split");
    ConfigNode factor = split;
    std::size_t start = 0;
    for (const Quantity quantity : {Q::MicroBatch, Q::Accumulation, Q::Processes}) {
      if (start > split.text.size()) break;
      const std::size_t end = std::min(split.text.find('x', start), split.text.size());
      factor.text = split.text.substr(start, end - start);
      if (factor.number()) add_as(main, quantity, "split", factor);
      start = end + 1;
    }
    // Without a third factor there is one device.
    if (std::count(split.text.begin(), split.text.end(), 'x') == 1) {
      factor.text = "1";
      add_as(main, Q::Processes, "split", factor);
    }
    const ConfigNode& options = *root.find("options");
    if (options.kind != Kind::Map) return;
    if (const ConfigNode* steps = options.find("steps"); steps != nullptr && steps->number())
      add_as(main, Q::MaxSteps, "steps", *steps);
    if (const ConfigNode* schedule = options.find("schedule"))
      add_as(main, Q::ScheduleType, "schedule", *schedule);
  }

  static Tool tool_of(const ConfigNode& root) {
    if (has_any(root, {"finetuning_type", "cutoff_len"}) ||
        (has_any(root, {"stage"}) && has_any(root, {"template"})))
      return Tool::LlamaFactory;
    if (has_any(root, {"base_model"}) &&
        has_any(root, {"micro_batch_size", "sequence_len", "datasets", "adapter"}))
      return Tool::Axolotl;
    if (has_any(root, {"accumulate_grad_batches"})) return Tool::Lightning;
    const ConfigNode* trainer = root.find("trainer");
    if (trainer != nullptr && has_any(*trainer, {"accumulate_grad_batches", "devices", "max_epochs",
                                                 "strategy", "gradient_clip_val", "num_nodes", "gpus"}))
      return Tool::Lightning;
    if (holds_trainer_arguments(root, 0)) return Tool::Transformers;
    return Tool::Generic;
  }

  static bool holds_trainer_arguments(const ConfigNode& node, int depth) {
    if (has_any(node, {"per_device_train_batch_size", "num_train_epochs", "lr_scheduler_type"})) return true;
    if (has_any(node, {"gradient_accumulation_steps"}) &&
        has_any(node, {"output_dir", "warmup_ratio", "max_grad_norm"}))
      return true;
    if (depth >= 3) return false;
    return std::any_of(node.map.begin(), node.map.end(),
                       [&](const auto& entry) { return holds_trainer_arguments(entry.second, depth + 1); });
  }

  void walk(const ConfigNode& node, Section& main, int depth) {
    if (depth > kMaxWalkDepth) return;
    if (is_deepspeed(node)) return deepspeed(node);
    if (is_accelerate(node)) return accelerate(node);
    for (const auto& [key, value] : node.map) {
      if (is_other_phase(key)) continue;
      if (value.kind == Kind::Map) {
        special_map(key, value, main);
        const std::size_t before = main.settings.size();
        walk(value, main, depth + 1);
        // SageMaker passes every hyperparameter as a string; the script's parser converts them.
        if (normal_key(key) == "hyperparameters") {
          for (std::size_t i = before; i < main.settings.size(); ++i) main.settings[i].quoted = false;
        }
      } else if (value.kind == Kind::List) {
        add_setting(main, key, value);
        if (!argument_list(node, value)) {
          for (const ConfigNode& item : value.list) list_item(key, item, main, depth);
        }
      } else if (value.kind == Kind::Scalar) {
        scalar(key, value, main);
      }
    }
  }

  // ["--max_steps", "100", ...]: an editor's or container's way to write a command.
  bool argument_list(const ConfigNode& owner, const ConfigNode& value) {
    std::string command;
    bool options = false;
    for (const ConfigNode& item : value.list) {
      if (item.kind != Kind::Scalar || item.text.find('\n') != std::string::npos) return false;
      options = options || item.text.starts_with("--");
      command += " '" + item.text + "'";
    }
    if (!options) return false;
    const ConfigNode* program = owner.find("program");
    const bool launcher = !value.list.empty() && is_command(value.list[0].text + "            ");
    if (!launcher)
      command = "python " + (program == nullptr ? std::string("script.py") : program->text) + command;
    for (Section& section : read_shell_sections(command, file_, std::max(1, value.line)))
      sections_.push_back(std::move(section));
    return true;
  }

  void list_item(const std::string& key, const ConfigNode& item, Section& main, int depth) {
    const std::string name = normal_key(key);
    if (item.kind == Kind::Scalar && is_command(item.text)) return command(item);
    // Steps of a workflow and entries of args lists are worth a look; data sets and callbacks are not.
    if (item.kind == Kind::Map && name != "datasets" && name != "callbacks" && name != "log_history")
      walk(item, main, depth + 1);
  }

  void scalar(const std::string& key, const ConfigNode& value, Section& main) {
    const std::string name = normal_key(key);
    if (is_command(value.text)) return command(value);
    if (value.text.ends_with(".json") || value.text.ends_with(".yaml") || value.text.ends_with(".yml")) {
      main.references.push_back(value.text);
      if (name.find("deepspeed") != std::string::npos) main.marks.push_back("deepspeed_flag");
    }
    const std::string word = normal_key(value.text);
    if (name == "automatic_optimization" && word == "false") main.marks.push_back("manual_optimization");
    if (name == "strategy") main.marks.push_back("strategy:" + word);
    if (name.find("sync") != std::string::npos && name.find("b") != std::string::npos &&
        (name.find("bn") != std::string::npos || name.find("batchnorm") != std::string::npos ||
         name.find("batch_norm") != std::string::npos) &&
        value.is_true())
      main.marks.push_back("sync_batchnorm");
    if ((name == "norm" || name == "norm_layer" || name == "norm_type" || name == "normalization") &&
        (word.find("batch") != std::string::npos || word == "bn" || word.starts_with("bn")))
      main.marks.push_back("batch_norm");
    if ((name == "batch_norm" || name == "batchnorm" || name == "use_batchnorm" || name == "use_bn") &&
        value.is_true())
      main.marks.push_back("batch_norm");
    if ((name.starts_with("in_batch") || name.find("in_batch_neg") != std::string::npos ||
         name.find("inbatch") != std::string::npos) &&
        value.is_true())
      main.marks.push_back("in_batch_negatives");
    if ((name.find("gradcache") != std::string::npos || name.find("grad_cache") != std::string::npos ||
         name == "gc_chunk_size") &&
        word != "false")
      main.marks.push_back("grad_cache");
    if (name == "optimizer_in_bwd" && value.is_true()) main.marks.push_back("optimizer_in_backward");
    if (name == "streaming" && value.is_true()) main.marks.push_back("streaming");
    if ((name == "packing" || name == "sample_packing" || name == "pack_dataset") && value.is_true())
      main.marks.push_back("packing");
    if ((name == "from_scratch" && value.is_true()) || (name == "init_from" && word == "scratch") ||
        (name == "pretrained" && word == "false"))
      main.marks.push_back("from_scratch");
    if (name == "dataset" && value.text.find(',') != std::string::npos) main.marks.push_back("many_datasets");
    add_setting(main, key, value);
  }

  void command(const ConfigNode& value) {
    for (Section& section : read_shell_sections(value.text, file_, std::max(1, value.line)))
      sections_.push_back(std::move(section));
  }

  // Maps whose type is worth more than their keys.
  void special_map(const std::string& key, const ConfigNode& value, Section& main) {
    const std::string name = normal_key(key);
    const ConfigNode* path = value.find("class_path");
    const ConfigNode* target = value.find("_target_");
    const ConfigNode* type = value.find("type");
    const ConfigNode* id = value.find("name");
    const ConfigNode* what = path != nullptr     ? path
                             : target != nullptr ? target
                             : type != nullptr   ? type
                                                 : id;
    if (what == nullptr || what->kind != Kind::Scalar) return;
    if (name == "strategy") main.marks.push_back("strategy:" + normal_key(what->text));
    if (name.find("loss") != std::string::npos || name == "criterion" || name == "objective")
      add_setting(main, "loss", *what);
    if (name == "scheduler" || name == "lr_scheduler") add_setting(main, "lr_scheduler", *what);
    if (name == "optimizer") add_setting(main, "optimizer", *what);
    if (name == "model" || name == "backbone") add_setting(main, "model", *what);
  }

  void deepspeed(const ConfigNode& node) {
    Section section;
    section.tool = Tool::DeepSpeed;
    section.file = file_;
    section.line = node.line;
    for (const auto& [key, value] : node.map) {
      if (value.kind != Kind::Map) add_setting(section, key, value);
    }
    if (const ConfigNode* optimizer = node.find("optimizer")) {
      section.marks.push_back("optimizer");
      if (const ConfigNode* params = optimizer->find("params")) add_named(section, *params, {"lr"});
    }
    if (const ConfigNode* scheduler = node.find("scheduler")) {
      section.marks.push_back("scheduler");
      if (const ConfigNode* type = scheduler->find("type"))
        add_as(section, Q::ScheduleType, "scheduler.type", *type);
      if (const ConfigNode* params = scheduler->find("params")) scheduler_params(section, *params);
    }
    for (const std::string_view half : {"fp16", "bf16"}) {
      const ConfigNode* block = node.find(half);
      if (block == nullptr || block->kind != Kind::Map) continue;
      if (const ConfigNode* enabled = block->find("enabled"))
        add_as(section, half == "fp16" ? Q::Fp16 : Q::Bf16, std::string(half) + ".enabled", *enabled);
    }
    sections_.push_back(std::move(section));
  }

  void scheduler_params(Section& section, const ConfigNode& params) {
    add_named(section, params, {"warmup_num_steps", "total_num_steps"});
    if (const ConfigNode* peak = params.find("warmup_max_lr"))
      add_as(section, Q::SchedulePeak, "scheduler.params.warmup_max_lr", *peak);
    if (const ConfigNode* peak = params.find("cycle_max_lr"))
      add_as(section, Q::SchedulePeak, "scheduler.params.cycle_max_lr", *peak);
  }

  void add_named(Section& section, const ConfigNode& node, std::initializer_list<std::string_view> keys) {
    for (const std::string_view key : keys) {
      if (const ConfigNode* value = node.find(key)) add_setting(section, key, *value);
    }
  }

  static void add_as(Section& section, Quantity quantity, std::string key, const ConfigNode& value) {
    Setting setting{
        .quantity = quantity, .key = std::move(key), .written = value.text, .number = value.number()};
    setting.is_auto = normal_key(value.text) == "auto";
    setting.quoted = value.quoted;
    setting.line = value.line;
    setting.file = section.file;
    section.settings.push_back(std::move(setting));
  }

  void accelerate(const ConfigNode& node) {
    Section section;
    section.tool = Tool::Accelerate;
    section.file = file_;
    section.line = node.line;
    for (const auto& [key, value] : node.map) {
      if (value.kind == Kind::Scalar) add_setting(section, key, value);
    }
    if (const ConfigNode* type = node.find("distributed_type"))
      section.marks.push_back("distributed:" + normal_key(type->text));
    const ConfigNode* block = node.find("deepspeed_config");
    if (block != nullptr && block->kind == Kind::Map && !block->map.empty()) {
      Section plugin;
      plugin.tool = Tool::DeepSpeedPlugin;
      plugin.file = file_;
      plugin.line = block->line;
      for (const auto& [key, value] : block->map) add_setting(plugin, key, value);
      if (const ConfigNode* file = block->find("deepspeed_config_file")) {
        if (file->text != "none" && !file->text.empty()) {
          plugin.references.push_back(file->text);
          plugin.marks.push_back("config_file");
        }
      }
      sections_.push_back(std::move(plugin));
    }
    sections_.push_back(std::move(section));
  }

  // A document without a tool's mark may name a quantity for several parts (two optimizers): then it says
  // nothing.
  static void drop_ambiguous(Section& section) {
    if (section.tool != Tool::Generic && section.tool != Tool::Lightning) return;
    std::set<Quantity> ambiguous;
    for (const Setting& a : section.settings) {
      for (const Setting& b : section.settings) {
        if (a.quantity == b.quantity && normal_key(a.key) == normal_key(b.key) && a.written != b.written)
          ambiguous.insert(a.quantity);
      }
    }
    std::erase_if(section.settings, [&](const Setting& s) { return ambiguous.contains(s.quantity); });
  }

  std::size_t file_;
  const std::string& file_name_;
  std::vector<Section> sections_;
};

}  // namespace

std::vector<Section> read_tree_sections(const ConfigNode& root, std::size_t file,
                                        const std::string& file_name) {
  return TreeReader(file, file_name).run(root);
}

}  // namespace batchwright::check
