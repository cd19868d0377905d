#include "check/explore.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

constexpr std::size_t kMaxWorlds = 10;
constexpr std::size_t kMaxRoots = 12;

bool derives_from(const Scan& scan, const Stmt* type, std::string_view word) {
  for (int depth = 0; type && depth < 6; ++depth) {
    const Stmt* next = nullptr;
    for (const Expr* base : type->bases) {
      if (!base) continue;
      const auto name = last_part(base->source);
      if (name.find(word) != std::string_view::npos) return true;
      if (!next) next = scan.find_class(name);
    }
    type = next;
  }
  return false;
}

using Start = std::function<void(Machine&)>;

struct Decisions {
  std::map<std::string, bool, std::less<>> sides;  // by condition: the side that was taken
  std::set<std::string, std::less<>> adjustments;  // those over the size of a loss and zeroing only
};

bool is_adjusted(const Finding& finding) {
  return finding.severity == Severity::Mistake &&
         is_one_of(finding.kind, {"no_division", "double_division", "geometric_weighting", "log_factor",
                                  "divide_after_backward", "custom_loss_bypass", "aux_loss_unscaled",
                                  "world_size_rescale_cargo", "missing_zero_grad", "zero_grad_in_window"});
}

// A division or zeroing that hangs on something open is wrong only where it is wrong with and without it.
void keep_common(Judgement& usual, Judgement& turned, const std::string& condition) {
  const auto lacks = [](const Judgement& other, const Finding& finding) {
    return std::none_of(other.findings.begin(), other.findings.end(),
                        [&](const Finding& known) { return known.kind == finding.kind; });
  };
  const Judgement before = usual;
  const auto dropped = std::erase_if(
      usual.findings, [&](const Finding& finding) { return is_adjusted(finding) && lacks(turned, finding); });
  std::erase_if(turned.findings,
                [&](const Finding& finding) { return is_adjusted(finding) && lacks(before, finding); });
  if (dropped > 0 && usual.missing.empty())
    usual.missing = fmt::format(
        "whether {} holds: it decides whether the loss is divided or the gradients are zeroed", condition);
}

// Evaluations for one file, all runs together: a few tens of milliseconds.
constexpr long kMaxEvaluations = 150'000;

struct Explorer {
  const Module& module;
  const Scan& scan;
  Judgement joined;
  std::set<const Stmt*> reached;
  long spent = 0;

  static void merge(Judgement& into, const Judgement& from) {
    for (const Finding& finding : from.findings) add_finding(into, finding);
    if (into.missing.empty()) into.missing = from.missing;
    into.trains = into.trains || from.trains;
    into.accumulates = into.accumulates || from.accumulates;
  }

  // One run; a second one when the program turned out to use another N, so that its epochs hold whole
  // windows.
  Judgement run(World world, const Start& start, Decisions& decisions) {
    Judgement result;
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (spent > kMaxEvaluations) break;
      Machine machine(module, scan, world);
      try {
        machine.run_module();
        if (start) start(machine);
      } catch (const StopIteration&) {
      }
      for (const auto& definition : scan.functions())
        if (machine.entered(definition.function)) reached.insert(definition.function);
      machine.note_meaning(!start);
      spent += machine.spent();
      result = judge(machine.trace(), scan);
      decisions.sides = machine.decisions();
      decisions.adjustments.clear();
      for (const auto& [text, side] : decisions.sides)
        if (machine.only_adjusts(text)) decisions.adjustments.insert(text);
      if (machine.trace().unknown_boundary && result.missing.empty())
        result.missing =
            "when " + machine.trace().unknown_what + " holds: it decides when the optimizer steps";
      if (machine.trace().budget_spent && !result.trains)
        result.missing = "the program is too long to be followed";
      const double used = machine.trace().accumulation;
      if (used < 2 || used > 16 || used == world.accumulation || attempt == 1) break;
      world.epoch_accumulation = used;
    }
    return result;
  }

  void from(const Start& start) {
    Decisions decisions, ignored;
    World usual;
    // The file's own N where it is small; a large one would only make the runs long.
    if (const double own = scan.largest_window(); own >= 2 && own <= 8)
      usual.accumulation = usual.epoch_accumulation = own;
    Judgement all = run(usual, start, decisions);
    std::size_t worlds = 0;
    for (const auto& [text, side] : decisions.sides) {
      if (++worlds > kMaxWorlds) break;
      World turned = usual;
      turned.choices[text] = !side;
      Judgement other = run(turned, start, ignored);
      if (decisions.adjustments.count(text) && other.trains) keep_common(all, other, text);
      // Whether processes exchange is shown by how the program is launched, not by a resumed position, say.
      const bool exchange = contains_any(lower(text), {"ddp", "distributed", "world", "fsdp", "rank", "gpu",
                                                       "parallel", "isinstance", "sync", "accum"});
      std::erase_if(other.findings, [&](const Finding& finding) {
        if (finding.kind == "no_sync_inverted" && !exchange) return true;
        return std::any_of(all.findings.begin(), all.findings.end(),
                           [&](const Finding& known) { return known.kind == finding.kind; });
      });
      merge(all, other);
    }
    merge(joined, all);
  }
};

}  // namespace

Judgement explore(const Module& module, const Scan& scan) {
  Explorer explorer{module, scan, {}, {}, 0};
  // The module's own code trains only if it, or what it calls, goes backward.
  if (scan.effects(module.body) & kDoesBackward) explorer.from(nullptr);
  for (const auto& definition : scan.functions()) {
    const Stmt* owner = definition.owner;
    if (!owner || explorer.reached.count(definition.function)) continue;
    const bool trainer = derives_from(scan, owner, "Trainer");
    // A base class elsewhere may be Lightning's: nothing but Lightning is told how it shall optimise.
    const bool lightning = derives_from(scan, owner, "LightningModule") ||
                           (!trainer && !owner->bases.empty() && scan.mentions("automatic_optimization"));
    if (lightning && definition.function->text == "training_step")
      explorer.from([owner](Machine& machine) { machine.run_lightning(owner); });
    else if (trainer && definition.function->text == "training_step")
      explorer.from([owner](Machine& machine) { machine.run_trainer(owner); });
    else if (trainer && definition.function->text == "compute_loss" &&
             !scan.find_method(owner, "training_step"))
      explorer.from([owner](Machine& machine) { machine.run_trainer(owner); });
  }
  // Functions that train and that nothing so far has called; callers before callees.
  std::size_t roots = 0;
  for (const bool uncalled : {true, false})
    for (const auto& definition : scan.functions()) {
      const Stmt* function = definition.function;
      if (explorer.reached.count(function) || roots >= kMaxRoots || scan.is_called(function) == uncalled)
        continue;
      const auto effects = scan.effects_with_inner(function->body);
      if (!(effects & kDoesBackward) || !(effects & kDoesStep)) continue;
      ++roots;
      explorer.from([&definition](Machine& machine) { machine.run_root(definition); });
    }
  if (!explorer.joined.trains && explorer.joined.missing.empty() && scan.accumulates())
    for (const auto& definition : scan.functions()) {
      const auto effects = scan.effects(definition.function->body);
      if ((effects & kDoesBackward) && (effects & kDoesDivide) && !(effects & kDoesStep))
        explorer.joined.missing = "where the optimizer steps: it is not in this file";
    }
  judge_source(module, scan, explorer.joined);
  return explorer.joined;
}

}  // namespace batchwright::check
