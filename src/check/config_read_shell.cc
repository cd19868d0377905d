#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>

#include "check/config_read.h"
#include "check/config_shell_arguments.h"
#include "check/config_shell_words.h"
#include "check/files.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view e) { return text.ends_with(e); });
}

bool is_config_file(std::string_view text) {
  return ends_with_any(text, {".json", ".yaml", ".yml", ".jsonc"});
}

// A launcher's options that take a value we use; all others are skipped with their value where they have one.
struct LaunchOption {
  std::string_view option;  // normalised, without dashes
  Quantity quantity;
};
constexpr LaunchOption kTorchrun[] = {{"nproc_per_node", Q::ProcessesPerNode}, {"nnodes", Q::Nodes}};
constexpr LaunchOption kAccelerate[] = {{"num_processes", Q::Processes},
                                        {"num_machines", Q::Nodes},
                                        {"gradient_accumulation_steps", Q::Accumulation},
                                        {"gradient_clipping", Q::Clip}};
constexpr LaunchOption kDeepSpeed[] = {{"num_gpus", Q::ProcessesPerNode}, {"num_nodes", Q::Nodes}};
constexpr LaunchOption kSrun[] = {{"ntasks", Q::Processes},
                                  {"n", Q::Processes},
                                  {"nodes", Q::Nodes},
                                  {"ntasks_per_node", Q::ProcessesPerNode}};
constexpr LaunchOption kMpi[] = {{"np", Q::Processes}, {"n", Q::Processes}};

enum class Launcher { None, Python, Torchrun, Accelerate, DeepSpeed, Srun, Mpi, Runner };

// Walks one command: launchers may be nested (srun torchrun train.py); each adds to the launch section, the
// words behind the script are its arguments.
class CommandReader {
 public:
  CommandReader(const ShellScript& script, const ShellCommand& command, std::size_t file)
      : script_(script), words_(command.words), command_(command) {
    launch_.tool = Tool::Launcher;
    arguments_.tool = Tool::Transformers;
    launch_.file = arguments_.file = file;
    launch_.line = arguments_.line = command.line;
  }

  std::vector<Section> run() {
    for (; at_ < words_.size() && !in_arguments_; ++at_) head_word();
    if (launchers_ == 0) return {};
    while (at_ < words_.size()) argument();
    environment();
    classify_arguments(arguments_);
    launch_.program = arguments_.program;
    return {launch_, arguments_};
  }

 private:
  void head_word() {
    const std::string& text = words_[at_].text;
    const std::string name = base_name(text);
    if (name == "torchrun") return launcher(Launcher::Torchrun, "torchrun");
    if (name == "deepspeed") return launcher(Launcher::DeepSpeed, "deepspeed");
    if (name == "srun") return launcher(Launcher::Srun, "srun");
    if (name == "mpirun" || name == "mpiexec") return launcher(Launcher::Mpi, "mpirun");
    if (name == "accelerate" && next_is("launch")) return ++at_, launcher(Launcher::Accelerate, "accelerate");
    if ((name == "llamafactory-cli" || name == "axolotl" || name == "swift" || name == "trl" ||
         name == "tune" || name == "xtuner" || name == "litgpt"))
      return runner(name);
    if (name.starts_with("python")) return python();
    if (name == "lightning" && next_is("run")) return;
    if (launchers_ == 0 && at_ == 0 && !text.starts_with("-") && name != "CUDA_VISIBLE_DEVICES") {
      // Wrappers such as numactl, docker run or uv run stand before the launcher; look further along the
      // command.
      return;
    }
    if (launchers_ > 0) option_or_program();
  }

  bool next_is(std::string_view word) const {
    return at_ + 1 < words_.size() && words_[at_ + 1].text == word;
  }

  void launcher(Launcher kind, const std::string& name) {
    kind_ = kind;
    ++launchers_;
    launch_.marks.push_back("launcher:" + name);
    arguments_.line = words_[std::min(at_, words_.size() - 1)].line;
  }

  // llamafactory-cli train x.yaml, axolotl train x.yml, trl sft --..., tune run --nproc_per_node 2 recipe ...
  void runner(const std::string& name) {
    launcher(Launcher::Runner, name);
    arguments_.program = name;
    if (name == "tune") kind_ = Launcher::Torchrun;
    if (at_ + 1 < words_.size() && !words_[at_ + 1].text.starts_with("-") &&
        !is_config_file(words_[at_ + 1].text))
      ++at_;
    if (name != "tune") in_arguments_ = true;
  }

  void python() {
    // python -m torch.distributed.launch ..., python -m torch.distributed.run ..., python train.py
    std::size_t next = at_ + 1;
    while (next < words_.size() && (words_[next].text == "-u" || words_[next].text == "-O")) ++next;
    if (next + 1 < words_.size() && words_[next].text == "-m") {
      const std::string& module = words_[next + 1].text;
      at_ = next + 1;
      if (module == "torch.distributed.launch" || module == "torch.distributed.run")
        return launcher(Launcher::Torchrun, "torchrun");
      if (module == "accelerate.commands.launch") return launcher(Launcher::Accelerate, "accelerate");
      if (module == "deepspeed.launcher.runner") return launcher(Launcher::DeepSpeed, "deepspeed");
      launcher(Launcher::Python, "python");
      return program(module);
    }
    launcher(Launcher::Python, "python");
    at_ = next - 1;
  }

  void program(const std::string& name) {
    arguments_.program = name;
    in_arguments_ = true;
  }

  void option_or_program() {
    const ShellWord& word = words_[at_];
    if (!word.text.starts_with("-")) {
      if (word.unknown && word.text.starts_with("$")) return;  // $LAUNCHER_ARGS and the like
      return program(word.text);
    }
    std::string option, value;
    const ShellWord* source = split_option(word, option, value);
    if (kind_ == Launcher::Accelerate) accelerate_option(option, value, source);
    if (kind_ == Launcher::DeepSpeed && source != nullptr) {
      if (option == "include") include_list(value, *source);
      if (option == "hostfile") launch_.references.push_back(value);
    }
    if ((kind_ == Launcher::Accelerate || kind_ == Launcher::Torchrun) && option == "m" &&
        source == nullptr && at_ + 1 < words_.size()) {
      ++at_;
      return program(words_[at_].text);
    }
    for (const LaunchOption& known : options()) {
      if (known.option == option && source != nullptr) add(launch_, known.quantity, option, value, *source);
    }
  }

  std::span<const LaunchOption> options() const {
    switch (kind_) {
      case Launcher::Torchrun:
        return kTorchrun;
      case Launcher::Accelerate:
        return kAccelerate;
      case Launcher::DeepSpeed:
        return kDeepSpeed;
      case Launcher::Srun:
        return kSrun;
      case Launcher::Mpi:
        return kMpi;
      default:
        return {};
    }
  }

  void accelerate_option(const std::string& option, const std::string& value, const ShellWord* source) {
    if (option == "use_deepspeed") launch_.marks.push_back("use_deepspeed");
    if (source != nullptr && (option == "config_file" || option == "deepspeed_config_file")) {
      launch_.references.push_back(value);
      if (option == "deepspeed_config_file") launch_.marks.push_back("use_deepspeed");
    }
  }

  // --include localhost:0,1,2,3@host2:0,1 names the devices one by one.
  void include_list(const std::string& value, const ShellWord& source) {
    long devices = 0;
    for (std::size_t i = 0; i < value.size();) {
      const std::size_t end = std::min(value.find('@', i), value.size());
      const std::string host = value.substr(i, end - i);
      const std::size_t colon = host.find(':');
      if (colon == std::string::npos) return;  // all slots of a host: unknown
      devices += 1 + std::count(host.begin() + static_cast<std::ptrdiff_t>(colon), host.end(), ',');
      i = end + 1;
    }
    add(launch_, Q::Processes, "include", std::to_string(devices), source);
  }

  // "--key value", "--key=value" or a switch: source is the word that holds the value, nullptr for a switch.
  const ShellWord* split_option(const ShellWord& word, std::string& option, std::string& value) {
    std::string_view text = word.text;
    text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
    if (const std::size_t equal = text.find('='); equal != std::string_view::npos) {
      option = normal_key(text.substr(0, equal));
      value = text.substr(equal + 1);
      return &word;
    }
    option = normal_key(text);
    static const std::set<std::string> kSwitches = {"multi_gpu",
                                                    "use_deepspeed",
                                                    "use_fsdp",
                                                    "standalone",
                                                    "m",
                                                    "module",
                                                    "no_python",
                                                    "u",
                                                    "tpu",
                                                    "cpu",
                                                    "no_local_rank",
                                                    "same_network",
                                                    "overcommit",
                                                    "oversubscribe",
                                                    "allow_run_as_root",
                                                    "exclusive",
                                                    "no_ssh",
                                                    "do_train",
                                                    "do_eval",
                                                    "do_predict",
                                                    "fp16",
                                                    "bf16",
                                                    "tf32",
                                                    "gradient_checkpointing",
                                                    "overwrite_output_dir",
                                                    "plot_loss"};
    if (at_ + 1 >= words_.size()) return nullptr;
    const ShellWord& next = words_[at_ + 1];
    const bool next_is_option = next.text.size() > 1 && next.text[0] == '-' &&
                                !std::isdigit(static_cast<unsigned char>(next.text[1])) &&
                                next.text[1] != '.';
    if (next_is_option) return nullptr;
    if (kSwitches.contains(option)) {
      const std::string word_value = normal_key(next.text);
      if (word_value != "true" && word_value != "false") return nullptr;
    }
    ++at_;
    value = next.text;
    return &next;
  }

  static void add(Section& section, Quantity quantity, const std::string& key, const std::string& value,
                  const ShellWord& source) {
    Setting setting{.quantity = quantity,
                    .key = key,
                    .written = value,
                    .number = source.unknown ? std::nullopt : parse_number(value)};
    setting.is_auto = normal_key(value) == "auto" || value == "gpu";
    setting.line = source.line;
    setting.file = section.file;
    setting.inexact = source.inexact;
    section.settings.push_back(std::move(setting));
  }

  void argument() {
    const ShellWord& word = words_[at_];
    if (word.text.starts_with("-") && word.text.size() > 1) {
      std::string option, value;
      const ShellWord* source = split_option(word, option, value);
      argument_value(option, source == nullptr ? std::string("true") : value,
                     source == nullptr ? word : *source);
      ++at_;
      return;
    }
    const std::size_t equal = word.text.find('=');
    if (equal != std::string::npos && equal > 0) {  // Hydra's and OmegaConf's overrides: trainer.devices=8
      std::string key = word.text.substr(0, equal);
      key = key.substr(key.find_last_of(".+~") == std::string::npos ? 0 : key.find_last_of(".+~") + 1);
      argument_value(normal_key(key), word.text.substr(equal + 1), word);
    } else if (is_config_file(word.text)) {
      arguments_.references.push_back(word.text);
    } else if (arguments_.program.empty()) {
      arguments_.program = word.text;
    }
    ++at_;
  }

  void argument_value(const std::string& option, const std::string& value, const ShellWord& source) {
    if (is_config_file(value)) arguments_.references.push_back(value);
    // The Trainer's --deepspeed takes a file; DeepSpeed's own --deepspeed is a switch beside
    // --deepspeed_config.
    if (option == "deepspeed" && is_config_file(value)) arguments_.marks.push_back("deepspeed_flag");
    if (option == "packing" && normal_key(value) == "true") arguments_.marks.push_back("packing");
    if (option == "deepspeed_config") arguments_.marks.push_back("engine_flag");
    if (option == "stage" || option == "finetuning_type") arguments_.tool = Tool::LlamaFactory;
    if (option == "streaming" && value != "false" && value != "False")
      arguments_.marks.push_back("streaming");
    if (option == "max_train_steps" || option == "num_warmup_steps") arguments_.marks.push_back("no_trainer");
    if (option == "dataset" && std::count(value.begin(), value.end(), ',') > 0)
      arguments_.marks.push_back("many_datasets");
    static const std::set<std::string> kIgnored = {"model", "loss", "optimizer", "epochs_per_eval"};
    const std::optional<Quantity> quantity = quantity_of(arguments_.tool, option);
    if (!quantity) return;
    add(arguments_, *quantity, option, value, source);
  }

  void environment() {
    const auto value_of = [&](const char* name) -> const ShellWord* {
      if (const auto own = command_.environment.find(name); own != command_.environment.end())
        return &own->second;
      if (const auto all = script_.variables.find(name); all != script_.variables.end()) return &all->second;
      return nullptr;
    };
    if (const ShellWord* visible = value_of("CUDA_VISIBLE_DEVICES");
        visible != nullptr && !visible->unknown && !visible->text.empty()) {
      launch_.visible_devices =
          1 + static_cast<int>(std::count(visible->text.begin(), visible->text.end(), ','));
    }
    if (kind_ == Launcher::Runner) {
      if (const ShellWord* n = value_of("NPROC_PER_NODE"))
        add(launch_, Q::ProcessesPerNode, "NPROC_PER_NODE", n->text, *n);
      if (const ShellWord* n = value_of("NNODES")) add(launch_, Q::Nodes, "NNODES", n->text, *n);
    }
    if (kind_ == Launcher::Srun || launch_.has("launcher:srun")) {
      if (launch_.has("launcher:torchrun") || launch_.has("launcher:accelerate") ||
          launch_.has("launcher:deepspeed"))
        return;
      directive("ntasks", Q::Processes);
      directive("nodes", Q::Nodes);
      directive("ntasks_per_node", Q::ProcessesPerNode);
    }
  }

  void directive(const char* name, Quantity quantity) {
    const auto found = script_.directives.find(name);
    if (found != script_.directives.end() && launch_.find(quantity) == nullptr)
      add(launch_, quantity, name, found->second.text, found->second);
  }

  const ShellScript& script_;
  const std::vector<ShellWord>& words_;
  const ShellCommand& command_;
  std::size_t at_ = 0;
  bool in_arguments_ = false;
  int launchers_ = 0;
  Launcher kind_ = Launcher::None;
  Section launch_, arguments_;
};

}  // namespace

std::vector<Section> read_shell_sections(std::string_view text, std::size_t file, int first_line) {
  const ShellScript script = parse_shell(text, first_line);
  std::vector<Section> sections;
  for (const ShellCommand& command : script.commands) {
    for (Section& section : CommandReader(script, command, file).run())
      sections.push_back(std::move(section));
  }
  Section variables = variables_of(script, file);
  if (!variables.settings.empty()) sections.push_back(std::move(variables));
  return sections;
}

}  // namespace batchwright::check
