#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/config_rules.h"
#include "check/kinds.h"

namespace batchwright::check {
namespace {

using Q = Quantity;

Known number_of(const std::optional<Section>& section, Quantity quantity) {
  if (!section) return {};
  const Setting* setting = section->find(quantity);
  return setting == nullptr ? Known{} : Known{setting->number, setting};
}

bool whole(double value) { return std::floor(value) == value; }

std::string how_many_processes(const Run& run, const Known& processes,
                               const std::vector<std::string>& files) {
  if (processes.from != nullptr)
    return fmt::format("{:g} ({})", *processes, place(processes.from->file, processes.from->line, files));
  if (run.launch && run.launch->has("launcher:python"))
    return fmt::format("{:g} (plain python starts no others, {})", *processes,
                       place(run.launch->file, run.launch->line, files));
  if (run.launch)
    return fmt::format("{:g} ({})", *processes, place(run.launch->file, run.launch->line, files));
  return spell(*processes);
}

// The two exact batches around `wanted` for micro-batches of m on d devices.
std::string nearest_exact(double wanted, double unit) {
  const double below = std::floor(wanted / unit) * unit, above = std::ceil(wanted / unit) * unit;
  if (below < unit) return spell(above);
  return below == above ? spell(below) : fmt::format("{:g} or {:g}", below, above);
}

// T = m * a * W is DeepSpeed's own assertion (deepspeed/runtime/config.py, _batch_assertion); two of the
// three numbers give the third.
void engine_assertion(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Known total = number_of(run.engine, Q::GlobalBatch);
  if (!total || *total <= 0) return;
  Known micro = number_of(run.engine, Q::MicroBatch), steps = number_of(run.engine, Q::Accumulation);
  if (!micro && (run.has_arguments() || micro.from != nullptr)) micro = run.micro_batch();
  const bool steps_written = steps.from != nullptr;
  if (!steps && (run.has_arguments() || steps_written)) steps = run.accumulation();
  const Known processes = run.processes();
  if (!micro || *micro < 1) return;
  if (!steps && !steps_written) {  // DeepSpeed derives it, check_accumulation_places speaks of that
    if (processes && std::fmod(*total, *micro * *processes) != 0) {
      Finding& f = found.add("ds_world_size", *total.from);
      f.what = fmt::format("train_batch_size {:g} is no multiple of micro-batch {:g} x {} processes", *total,
                           *micro, how_many_processes(run, processes, files));
      f.fix = fmt::format("train_batch_size {}", nearest_exact(*total, *micro * *processes));
    }
    return;
  }
  if (!steps || *steps < 1) return;
  const double implied = *total / (*micro * *steps);
  if (processes && implied == *processes) return;
  if (!processes && whole(implied) && implied >= 1) return;
  Finding& f = found.add("ds_world_size", *total.from);
  f.what =
      processes
          ? fmt::format(
                "train_batch_size {:g} is not micro-batch {:g} x accumulation {:g} x {} processes = {:g}",
                *total, *micro, *steps, how_many_processes(run, processes, files),
                *micro * *steps * *processes)
          : fmt::format(
                "train_batch_size {:g} is not a multiple of micro-batch {:g} x accumulation {:g}: it holds "
                "for no number of processes",
                *total, *micro, *steps);
  if (processes && whole(implied) && implied >= 1) {
    f.fix = fmt::format("start {:g} processes, or write train_batch_size {:g}{}", implied,
                        *micro * *steps * *processes, run.trainer() ? " (or \"auto\")" : "");
  } else {
    f.fix = fmt::format("write train_batch_size {:g}", *micro * *steps * processes.value.value_or(1));
  }
  if (run.trainer() && run.has_arguments() &&
      number_of(run.engine, Q::MicroBatch).value.value_or(*micro) == *micro && processes) {
    const Setting* at = run.arguments.find(Q::MicroBatch) != nullptr ? run.arguments.find(Q::MicroBatch)
                                                                     : &run.arguments.settings.front();
    Finding& twice = found.add("two_places", *at);
    twice.what =
        fmt::format("the arguments make a global batch of {:g}, and {} says {:g}",
                    *micro * *steps * *processes, place(total.from->file, total.from->line, files), *total);
    twice.consequence = "the Trainer compares the two and refuses to start";
    twice.fix = fmt::format("\"train_batch_size\": \"auto\" in {}", files[total.from->file]);
  }
}

// The batch that a document asks for by name, against what its parts make.
void stated_batch(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Setting* stated = run.arguments.find(Q::GlobalBatch);
  if (stated == nullptr) {
    for (const Setting& setting : run.remarks) {
      if (setting.quantity == Q::GlobalBatch && setting.number && setting.inexact.empty()) stated = &setting;
    }
  }
  if (stated == nullptr || !stated->number || *stated->number <= 0) return;
  const Known micro = run.micro_batch(), processes = run.processes();
  const Setting* written = run.arguments.find(Q::Accumulation);
  const Known steps = run.accumulation();
  if (!micro || *micro < 1 || written == nullptr || !steps || !written->inexact.empty() || *steps < 1) return;
  const double per_process = *micro * *steps;
  if (processes) {
    const double real = per_process * *processes;
    if (real == *stated->number) return;
    if (std::floor(*stated->number / (*micro * *processes)) == *steps) {  // the floor of an inexact division
      Finding& f = found.add("not_divisible", *stated);
      f.what = fmt::format(
          "a global batch of {:g} is no multiple of micro-batch {:g} x {:g} processes: {:g} accumulation "
          "steps make {:g}",
          *stated->number, *micro, *processes, *steps, real);
      f.fix = fmt::format("ask for {}", nearest_exact(*stated->number, *micro * *processes));
      return;
    }
    Finding& f = found.add("world_size_effective_batch", *stated);
    f.what = fmt::format(
        "the batch is stated as {:g}, but micro-batch {:g} x accumulation {:g} x {} processes = {:g}",
        *stated->number, *micro, *steps, how_many_processes(run, processes, files), real);
    f.consequence = fmt::format("every optimizer step sees {:g} examples: {:.3g} times what is written", real,
                                real / *stated->number);
    const double right = *stated->number / (*micro * *processes);
    if (whole(right) && right >= 1 && written->file == stated->file && written->line == stated->line)
      found.correct(*written, spell(right));
    f.fix = whole(right) && right >= 1 ? fmt::format("accumulation steps {:g}", right)
                                       : fmt::format("the nearest exact batch is {}",
                                                     nearest_exact(*stated->number, *micro * *processes));
  } else if (std::fmod(*stated->number, per_process) != 0) {
    Finding& f = found.add("world_size_effective_batch", *stated);
    f.what = fmt::format(
        "the batch is stated as {:g}, which micro-batch {:g} x accumulation {:g} makes on no number of "
        "processes",
        *stated->number, *micro, *steps);
    f.consequence = "the batch of an optimizer step is not the one written";
    f.fix = "effective batch = micro-batch x accumulation steps x processes";
  } else if (*stated->number > per_process) {
    Finding& f = found.add("world_size_effective_batch", *stated);
    f.severity = Severity::Note;
    f.what = fmt::format(
        "the batch is stated as {:g}: micro-batch {:g} x accumulation {:g} makes that on exactly {:g} "
        "processes, and how many there are is not in these files",
        *stated->number, *micro, *steps, *stated->number / per_process);
    f.consequence = fmt::format("on one process an optimizer step sees {:g} examples", per_process);
    f.fix = "effective batch = micro-batch x accumulation steps x processes";
  }
}

}  // namespace

void check_world_size(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  engine_assertion(run, files, found);
  stated_batch(run, files, found);
  if (!run.launch || !run.launch->visible_devices) return;
  const Setting* each = run.launch->find(Q::ProcessesPerNode);
  if (each == nullptr)
    each = run.launch->find(Q::Nodes) == nullptr ? run.launch->find(Q::Processes) : nullptr;
  if (each == nullptr || !each->number || *each->number <= *run.launch->visible_devices) return;
  Finding& f = found.add("two_places", *each);
  f.what = fmt::format("{:g} processes are started where CUDA_VISIBLE_DEVICES shows {} devices",
                       *each->number, *run.launch->visible_devices);
  f.consequence = "the processes without a device of their own stop with an invalid device ordinal";
  f.fix =
      fmt::format("start {} processes, or show {:g} devices", *run.launch->visible_devices, *each->number);
}

void check_accumulation_places(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Known wanted =
      run.arguments.find(Q::Accumulation) != nullptr ||
              (run.accelerator_call && run.accelerator_call->find(Q::Accumulation) != nullptr)
          ? run.accumulation()
          : Known{};
  // accelerate's block: its number reaches the engine as an environment variable and wins over the loop's.
  if (const Known block = number_of(run.plugin, Q::Accumulation);
      block && wanted && *block != *wanted && !run.plugin->has("config_file")) {
    Finding& f = found.add(*block == 1 ? "ds_accum_default" : "two_places", *block.from);
    f.what = fmt::format("accelerate's DeepSpeed block accumulates {:g} micro-batches, the run asks for {}",
                         *block, spell(*wanted.from, files));
    f.consequence = run.trainer() ? "the Trainer refuses to start"
                                  : fmt::format("the engine's {:g} wins: {}", *block,
                                                *block == 1 ? "every micro-batch is an optimizer step"
                                                            : "the batch is another one");
    f.fix = fmt::format("gradient_accumulation_steps: {:g} here, or leave the line out", *wanted);
    found.correct(*block.from, spell(*wanted));
  }
  // Lightning writes the number into the engine's configuration itself.
  if (!run.engine || run.lightning()) return;
  const Setting* engine_steps = run.engine->find(Q::Accumulation);
  const bool accelerated = run.plugin || run.accelerator_call || run.trainer();
  if (engine_steps == nullptr) {
    const Known total = number_of(run.engine, Q::GlobalBatch), micro = number_of(run.engine, Q::MicroBatch);
    if (wanted && *wanted > 1) {
      Finding& f = found.add("ds_accum_missing", run.engine->file, std::max(1, run.engine->line));
      f.what = fmt::format("{} has no gradient_accumulation_steps, while the run asks for {}",
                           files[run.engine->file], spell(*wanted.from, files));
      f.consequence = accelerated ? fmt::format(
                                        "Accelerate takes it as 1: DeepSpeed's assertion fails, or every "
                                        "micro-batch is an optimizer step instead of every {:g}th",
                                        *wanted)
                                  : "DeepSpeed derives it from the other two, or takes 1";
      f.fix = accelerated ? "\"gradient_accumulation_steps\": \"auto\""
                          : fmt::format("\"gradient_accumulation_steps\": {:g}", *wanted);
    } else if (!wanted && total && micro && *micro >= 1) {
      const Known processes = run.processes();
      const bool one_window = processes && *total == *micro * *processes;
      const bool derived = processes && !accelerated && std::fmod(*total, *micro * *processes) == 0;
      if (*total > *micro && !one_window && !derived) {
        Finding& f = found.add("ds_accum_missing", *total.from);
        f.what = fmt::format(
            "train_batch_size {:g} and micro-batch {:g} stand without gradient_accumulation_steps", *total,
            *micro);
        f.consequence =
            "it is derived from however many processes start (or taken as 1 by Accelerate): the same file "
            "accumulates differently on another machine, or stops with an assertion";
        f.fix = "write \"gradient_accumulation_steps\"";
      }
    }
    return;
  }
  // Without the Trainer nobody compares: DeepSpeed's value wins (accelerate.Accelerator._prepare_deepspeed).
  if (run.trainer() || !engine_steps->number || !wanted) return;
  if (*engine_steps->number == *wanted) return;
  Finding& f = found.add(*engine_steps->number == 1 ? "ds_accum_default" : "two_places", *engine_steps);
  f.what = fmt::format("{} accumulates {:g} micro-batches, the run asks for {}", files[run.engine->file],
                       *engine_steps->number, spell(*wanted.from, files));
  f.consequence = *engine_steps->number == 1
                      ? "the engine steps with every micro-batch"
                      : "one of the two wins silently: the batch is not the one in the other file";
  f.fix = "the same number in both, or \"auto\"";
  found.correct(*engine_steps, spell(*wanted));
}

void check_divisibility(const Run& run, const std::vector<std::string>& files, FindingList& found) {
  const Known micro = run.micro_batch(), processes = run.processes();
  for (const Setting& setting : run.arguments.settings) {
    if (setting.quantity != Q::Accumulation) continue;
    if (!setting.inexact.empty()) {
      Finding& f = found.add("not_divisible", setting);
      f.what = fmt::format("the accumulation steps come from an inexact division: {}", setting.inexact);
      f.consequence = "the remainder is dropped: every optimizer step sees fewer examples than asked";
      f.fix = "a global batch that micro-batch x processes divides";
    } else if (setting.number && *setting.number < 1 && !setting.quoted) {
      Finding& f = found.add("not_divisible", setting);
      f.what = fmt::format("{} is {}: a division was floored", setting.key, setting.written);
      f.fix = "at least 1";
    }
  }
  for (const Setting& setting : run.remarks) {
    if (setting.quantity != Q::Accumulation || setting.inexact.empty()) continue;
    Finding& f = found.add("not_divisible", setting);
    f.what = fmt::format("the accumulation steps come from an inexact division: {}", setting.inexact);
    f.consequence = "the remainder is dropped: every optimizer step sees fewer examples than asked";
    f.fix = "a global batch that micro-batch x processes divides";
  }
  const Setting* shared = run.arguments.find(Q::Accumulation);
  if (run.arguments.has("nanogpt") && shared != nullptr && shared->number && processes &&
      std::fmod(*shared->number, *processes) != 0) {
    Finding& f = found.add("not_divisible", *shared);
    f.what = fmt::format("{:g} accumulation steps are shared by {} processes, which do not divide them",
                         *shared->number, how_many_processes(run, processes, files));
    f.consequence = "train.py stops with an assertion before the first step";
    f.fix = fmt::format("gradient_accumulation_steps = {}", nearest_exact(*shared->number, *processes));
  }
  const Setting* global = run.arguments.find(Q::GlobalBatch);
  if (global == nullptr) {
    for (const Setting& setting : run.remarks) {
      if (setting.quantity == Q::GlobalBatch && setting.key != "comment") global = &setting;
    }
  }
  const bool derived = run.arguments.find(Q::Accumulation) == nullptr;
  if (global != nullptr && global->number && *global->number > 0 && derived && micro && *micro >= 1) {
    const double unit = *micro * processes.value.value_or(1);
    if (std::fmod(*global->number, unit) != 0) {
      Finding& f = found.add("not_divisible", *global);
      const double steps = std::floor(*global->number / unit);
      f.what = processes
                   ? fmt::format("a global batch of {:g} is no multiple of micro-batch {:g} x {} processes",
                                 *global->number, *micro, how_many_processes(run, processes, files))
                   : fmt::format("a global batch of {:g} is no multiple of micro-batch {:g}", *global->number,
                                 *micro);
      f.consequence = steps < 1
                          ? "the accumulation steps are floored to 0"
                          : fmt::format("{:g} accumulation steps make {:g}: {:.3g} % fewer examples per step",
                                        steps, steps * unit, 100 * (1 - steps * unit / *global->number));
      f.fix = fmt::format("ask for {}", nearest_exact(*global->number, unit));
    }
  }
  // GRPO groups: TRL requires generation batch % num_generations == 0 (trl.GRPOConfig.__post_init__).
  const Setting* group = run.arguments.find(Q::GroupSize);
  const Known effective = run.effective_batch();
  if (group != nullptr && group->number && *group->number > 1 && effective &&
      std::fmod(*effective, *group->number) != 0) {
    Finding& f = found.add("not_divisible", *group);
    f.what = fmt::format("an effective batch of {:g} is no multiple of num_generations {:g}", *effective,
                         *group->number);
    f.consequence = "the trainer refuses to start: groups of one prompt would be cut";
    f.fix = fmt::format("an effective batch of {}", nearest_exact(*effective, *group->number));
  }
}

}  // namespace batchwright::check
