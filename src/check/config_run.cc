#include "check/config_run.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "check/files.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

Known known(const Setting* setting) {
  if (setting == nullptr) return {};
  return {setting->number, setting};
}

const Setting* remark(const Run& run, Quantity quantity) {
  const Setting* found = nullptr;
  for (const Setting& setting : run.remarks) {
    if (setting.quantity != quantity || !setting.number) continue;
    if (found != nullptr && found->number != setting.number) return nullptr;  // two sizes: neither is sure
    found = &setting;
  }
  return found;
}

// micro-batch 8 and accumulation 1 are what the Trainer takes when nothing is written
// (transformers.TrainingArguments).
Known with_default(Known written, const Run& run, double fallback) {
  if (written.from != nullptr) return written;
  if (!run.trainer() || !run.has_arguments() || !run.complete) return {};
  return {fallback, nullptr};
}

double model_parallel(const Run& run) {
  double product = 1;
  std::set<std::string> seen;
  const auto take = [&](const std::vector<Setting>& settings) {
    for (auto it = settings.rbegin(); it != settings.rend(); ++it) {
      if (it->quantity == Q::ModelParallel && seen.insert(normal_key(it->key)).second)
        product *= std::max(1.0, it->number.value_or(1));
    }
  };
  take(run.arguments.settings);
  if (run.engine) take(run.engine->settings);
  return product;
}

Known devices(const Section& section) {
  if (const Setting* all = section.find(Q::Processes)) return known(all);
  const Setting* each = section.find(Q::ProcessesPerNode);
  if (each == nullptr) return {};
  const Setting* nodes = section.find(Q::Nodes);
  if (!each->number || *each->number < 1 || (nodes != nullptr && !nodes->number)) return {std::nullopt, each};
  return {*each->number * (nodes == nullptr ? 1 : *nodes->number), each};
}

Known launched(const Run& run) {
  const Section& launch = *run.launch;
  if (const Known direct = devices(launch); direct.from != nullptr && (direct || !launch.visible_devices))
    return direct;
  const Setting* nodes = launch.find(Q::Nodes);
  const double node_count = nodes == nullptr ? 1 : nodes->number.value_or(0);
  if (launch.has("launcher:torchrun") && launch.find(Q::ProcessesPerNode) == nullptr)
    return {node_count > 0 ? std::optional(node_count) : std::nullopt, nodes};
  const bool starts_all = launch.has("launcher:deepspeed") || launch.has("launcher:llamafactory-cli") ||
                          launch.has("launcher:axolotl") || launch.has("launcher:torchrun");
  if (starts_all && launch.visible_devices && node_count > 0)
    return {*launch.visible_devices * node_count, nullptr};
  if (launch.has("launcher:accelerate") && run.accelerate) return known(run.accelerate->find(Q::Processes));
  if (launch.has("launcher:python") && !run.lightning()) {
    // Without a launcher there is one process; a Trainer then splits its batch over all visible devices
    // itself.
    if (run.deepspeed()) return {1.0, nullptr};
    if (launch.visible_devices) return {static_cast<double>(*launch.visible_devices), nullptr};
  }
  return {};
}

}  // namespace

bool Run::trainer() const {
  return (arguments.tool == Tool::Transformers || arguments.tool == Tool::LlamaFactory ||
          arguments.tool == Tool::Axolotl) &&
         !arguments.has("no_trainer");
}

Known Run::micro_batch() const {
  if (const Setting* own = arguments.find(Q::MicroBatch); own != nullptr) return known(own);
  if (engine && engine->find(Q::MicroBatch) != nullptr && engine->find(Q::MicroBatch)->number)
    return known(engine->find(Q::MicroBatch));
  if (const Known remarked = known(remark(*this, Q::MicroBatch)); remarked) return remarked;
  return with_default({}, *this, arguments.tool == Tool::Axolotl ? 1 : 8);
}

Known Run::accumulation() const {
  if (const Setting* own = arguments.find(Q::Accumulation); own != nullptr) return known(own);
  if (accelerator_call && accelerator_call->find(Q::Accumulation) != nullptr)
    return known(accelerator_call->find(Q::Accumulation));
  if (engine && engine->find(Q::Accumulation) != nullptr && engine->find(Q::Accumulation)->number)
    return known(engine->find(Q::Accumulation));
  if (const Known remarked = known(remark(*this, Q::Accumulation)); remarked) return remarked;
  if (lightning()) return {1.0, nullptr};
  if (arguments.find(Q::GlobalBatch) != nullptr) return {};  // derived from it
  return with_default({}, *this, 1);
}

Known Run::processes() const {
  Known all;
  if (launch) all = launched(*this);
  if (!all && all.from == nullptr) {
    if (has_arguments()) all = devices(arguments);
    if (!all && all.from == nullptr && accelerate && (!launch || launch->has("launcher:accelerate")))
      all = known(accelerate->find(Q::Processes));
    // GPT-NeoX writes the devices into the engine's document.
    if (!all && all.from == nullptr && engine && !launch) all = devices(*engine);
    const bool launcher_decides =
        launch && (launch->has("launcher:torchrun") || launch->has("launcher:python"));
    if (!all && all.from == nullptr && !launcher_decides) {
      all = known(remark(*this, Q::Processes));
      if (!all && remark(*this, Q::ProcessesPerNode) != nullptr && remark(*this, Q::Nodes) == nullptr)
        all = known(remark(*this, Q::ProcessesPerNode));
    }
  }
  if (!all || *all < 1) return {std::nullopt, all.from};
  const double shared = model_parallel(*this);
  if (std::fmod(*all, shared) != 0) return {std::nullopt, all.from};
  all.value = *all / shared;
  return all;
}

Known Run::effective_batch() const {
  const Known m = micro_batch(), a = accumulation(), d = processes();
  if (!m || !a || !d) return {};
  return {*m * *a * *d, nullptr};
}

Known Run::max_steps() const {
  Known steps = known(arguments.find(Q::MaxSteps));
  if (steps && *steps <= 0) return {};
  return steps;
}

Known Run::epochs() const {
  if (const Setting* own = arguments.find(Q::Epochs)) return known(own);
  if (const Setting* remarked = remark(*this, Q::Epochs)) return known(remarked);
  return with_default({}, *this, arguments.tool == Tool::Axolotl ? 1 : 3);
}

Known Run::examples() const {
  if (arguments.has("packing")) return {};  // examples share rows: their number says nothing of the steps
  if (const Setting* own = arguments.find(Q::Examples)) return known(own);
  return known(remark(*this, Q::Examples));
}

Known Run::examples_at_most() const {
  if (arguments.has("packing")) return {};
  if (const Known exact = examples(); exact) return exact;
  const Setting* bound = arguments.find(Q::ExamplesAtMost);
  if (bound == nullptr || !bound->number || arguments.has("many_datasets") || *bound->number <= 0) return {};
  return known(bound);
}

Known Run::total_steps(bool at_most) const {
  if (const Known steps = max_steps(); steps.from != nullptr) return steps;
  const Known n = at_most ? examples_at_most() : examples(), e = epochs(), m = micro_batch(),
              a = accumulation();
  Known d = processes();
  if (at_most && !d) d.value = 1;
  if (!n || !e || !m || !a || !d || *m < 1 || *a < 1) return {};
  const double batches = std::ceil(*n / (*m * *d));
  return {std::ceil(std::ceil(batches / *a) * *e), nullptr};
}

namespace {

class Assembler {
 public:
  Assembler(const std::vector<Section>& sections, const std::vector<Setting>& comments,
            const std::vector<std::string>& names)
      : sections_(sections), comments_(comments), names_(names), used_(sections.size()) {}

  std::vector<Run> run() {
    for (std::size_t i = 0; i + 1 < sections_.size(); ++i) {
      if (sections_[i].tool == Tool::Launcher) command(i);
    }
    documents();
    for (Run& r : runs_) add_remarks(r);
    return std::move(runs_);
  }

 private:
  static bool holds_arguments(const Section& s) {
    return s.tool == Tool::Transformers || s.tool == Tool::LlamaFactory || s.tool == Tool::Axolotl ||
           s.tool == Tool::Lightning || (s.tool == Tool::Generic && !s.has("variables"));
  }

  // Sections of files whose base name is that of the reference.
  std::vector<std::size_t> of_file(const std::string& reference) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (base_name(names_[sections_[i].file]) == base_name(reference)) found.push_back(i);
    }
    return found;
  }

  template <typename Predicate>
  std::optional<std::size_t> only(Predicate predicate) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (!predicate(sections_[i])) continue;
      if (found) return std::nullopt;
      found = i;
    }
    return found;
  }

  void take(Run& run, std::size_t i) {
    const Section& section = sections_[i];
    used_[i] = true;
    if (section.tool == Tool::DeepSpeed)
      run.engine = section;
    else if (section.tool == Tool::DeepSpeedPlugin)
      run.plugin = section;
    else if (section.tool == Tool::Accelerate) {
      auto& slot = section.has("call:Accelerator") ? run.accelerator_call : run.accelerate;
      slot = section;
    } else if (holds_arguments(section))
      merge_before(run.arguments, section);
    for (const std::string& reference : section.references) follow(run, reference);
  }

  // What a file says stands before what the command says.
  static void merge_before(Section& arguments, const Section& from) {
    if (arguments.settings.empty()) {
      arguments.file = from.file;
      arguments.line = from.line;
    }
    if (from.tool != Tool::Generic &&
        (arguments.tool == Tool::Generic || arguments.settings.empty() || from.tool == Tool::LlamaFactory ||
         from.tool == Tool::Axolotl || from.tool == Tool::Lightning))
      arguments.tool = from.tool;
    arguments.settings.insert(arguments.settings.begin(), from.settings.begin(), from.settings.end());
    arguments.marks.insert(arguments.marks.end(), from.marks.begin(), from.marks.end());
  }

  void follow(Run& run, const std::string& reference) {
    if (!followed_.insert(base_name(reference)).second) return;
    const std::vector<std::size_t> found = of_file(reference);
    const std::string name = base_name(reference);
    const bool data = name.find("data") != std::string::npos || name.find("train") == 0;
    if (found.empty() && !data) run.complete = false;
    for (const std::size_t i : found) take(run, i);
  }

  void command(std::size_t i) {
    Run run;
    followed_.clear();
    run.from_command = true;
    run.launch = sections_[i];
    run.arguments = sections_[i + 1];
    used_[i] = used_[i + 1] = true;
    const std::vector<std::string> references = run.arguments.references;
    for (const std::string& reference : run.launch->references) follow(run, reference);
    for (const std::string& reference : references) follow(run, reference);
    script_of(run);
    fill_alone(run);
    const bool trains = run.has_arguments() || run.engine || run.plugin || run.accelerate;
    if (trains) runs_.push_back(std::move(run));
  }

  // The Python file that the command starts may construct the arguments itself.
  void script_of(Run& run) {
    if (!run.arguments.program.ends_with(".py")) return;
    for (const std::size_t i : of_file(run.arguments.program)) take(run, i);
  }

  // Documents that nothing refers to belong to the run when there is one of their kind only.
  void fill_alone(Run& run) {
    const auto engine = only([](const Section& s) { return s.tool == Tool::DeepSpeed; });
    const bool uses_engine =
        run.arguments.has("deepspeed_flag") || run.arguments.has("engine_flag") ||
        (run.plugin && run.plugin->has("config_file")) ||
        (run.launch && (run.launch->has("launcher:deepspeed") || run.launch->has("use_deepspeed"))) ||
        !run.from_command || run.complete;
    if (!run.engine && engine && uses_engine) take(run, *engine);
    const auto plugin = only([](const Section& s) { return s.tool == Tool::DeepSpeedPlugin; });
    const auto accelerate =
        only([](const Section& s) { return s.tool == Tool::Accelerate && !s.has("call:Accelerator"); });
    const bool accelerated = !run.launch || run.launch->has("launcher:accelerate");
    if (!run.plugin && plugin && accelerated) take(run, *plugin);
    if (!run.accelerate && accelerate && accelerated) take(run, *accelerate);
    const auto call = only([](const Section& s) { return s.has("call:Accelerator"); });
    if (!run.accelerator_call && call) take(run, *call);
    if (!run.from_command) return;
    const auto document = only([&](const Section& s) {
      return holds_arguments(s) &&
             (s.has("document") || std::any_of(s.marks.begin(), s.marks.end(),
                                               [](const std::string& m) { return m.starts_with("call:"); }));
    });
    if (document && !used_[*document] && arguments_missing(run)) take(run, *document);
  }

  static bool arguments_missing(const Run& run) {
    return run.arguments.find(Q::MicroBatch) == nullptr && run.arguments.find(Q::Accumulation) == nullptr;
  }

  // Documents that no command took: each set of arguments is a run of its own, with the one engine that there
  // is.
  void documents() {
    const bool commands = !runs_.empty();
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (used_[i] || !holds_arguments(sections_[i])) continue;
      Run run;
      followed_.clear();
      take(run, i);
      if (!commands) fill_alone(run);
      runs_.push_back(std::move(run));
    }
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Tool tool = sections_[i].tool;
      if (used_[i] || (tool != Tool::DeepSpeed && tool != Tool::DeepSpeedPlugin && tool != Tool::Accelerate))
        continue;
      Run run;
      followed_.clear();
      take(run, i);
      if (!commands && (tool == Tool::DeepSpeedPlugin || tool == Tool::Accelerate)) fill_alone(run);
      runs_.push_back(std::move(run));
    }
    // A script with constants only: its sizes may still contradict each other.
    for (std::size_t i = 0; i < sections_.size() && runs_.empty(); ++i) {
      if (!sections_[i].has("variables")) continue;
      Run run;
      run.arguments = sections_[i];
      runs_.push_back(std::move(run));
    }
  }

  // Sizes in comments and variables count for a run when they stand in one of its files.
  void add_remarks(Run& run) {
    std::set<std::size_t> files;
    const auto add = [&](const std::optional<Section>& section) {
      if (section) files.insert(section->file);
    };
    add(run.engine), add(run.plugin), add(run.accelerate), add(run.launch), add(run.accelerator_call);
    for (const Setting& setting : run.arguments.settings) files.insert(setting.file);
    files.insert(run.arguments.file);
    for (const Section& section : sections_) {
      if (section.has("variables") && files.contains(section.file))
        run.remarks.insert(run.remarks.end(), section.settings.begin(), section.settings.end());
    }
    for (const Setting& setting : comments_) {
      if (files.contains(setting.file)) run.remarks.push_back(setting);
    }
  }

  const std::vector<Section>& sections_;
  const std::vector<Setting>& comments_;
  const std::vector<std::string>& names_;
  std::vector<bool> used_;
  std::set<std::string> followed_;
  std::vector<Run> runs_;
};

}  // namespace

std::vector<Run> assemble_runs(const std::vector<Section>& sections, const std::vector<Setting>& comments,
                               const std::vector<std::string>& file_names) {
  return Assembler(sections, comments, file_names).run();
}

}  // namespace batchwright::check
