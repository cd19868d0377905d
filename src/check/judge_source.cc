// Mistakes that the source shows without a simulated gradient. They count only in a file that accumulates.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "check/judge.h"
#include "check/kinds.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

// Losses and layers that look at the whole micro-batch.
void judge_nature(const Module& module, const Scan& scan, Judgement& out) {
  if (scan.mentions("GradCache") || scan.mentions("grad_cache") || scan.mentions("Cached") ||
      scan.mentions("cached"))
    return;
  const bool synced = scan.mentions("SyncBatchNorm") || scan.mentions("FrozenBatchNorm") ||
                      scan.mentions("freeze_bn") || scan.mentions("GhostBatchNorm");
  std::set<std::string_view> in_batch_labels;  // labels = arange(batch): every other example is a negative
  bool joined = false;                         // features of the whole window are put together first
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::Assign && statement->value && statement->targets.size() == 1) {
      const auto text = statement->value->source;
      const auto name = lower(statement->targets[0]->source);
      if (contains_any(text, {"arange("}) && contains_any(name, {"label", "target", "gt", "truth"}) &&
          !contains_any(name, {"position", "idx"}))
        in_batch_labels.insert(statement->targets[0]->source);
      if (contains_any(text, {"torch.cat(", "torch.stack(", "jnp.concatenate("}) &&
          contains_any(lower(text), {"feat", "emb", "reps", "all_"}))
        joined = true;
    }
  });
  each_expression_of(module.body, [&](const Expr* part) {
    if (part->kind != ExprKind::Call) return;
    const auto name = part->kids.empty() || !part->kids[0] ? std::string_view{} : part->kids[0]->text;
    const auto word = lower(name);
    if (!synced && (name == "BatchNorm1d" || name == "BatchNorm2d" || name == "BatchNorm3d" ||
                    name == "BatchNormalization")) {
      add_once(out, "not_equivalent_by_nature", part->line);
      return;
    }
    const bool contrastive =
        contains_any(word, {"infonce", "info_nce", "ntxent", "nt_xent", "multiplenegatives", "cliploss",
                            "clip_loss", "simclr_loss", "in_batch_neg", "supcon", "contrastive_loss"});
    if (contrastive && !joined && !scan_defines(module, name))
      add_once(out, "not_equivalent_by_nature", part->line);
    if (!joined && contains_any(word, {"cross_entropy", "criterion", "loss_fn", "loss_fct", "ce_loss"}) &&
        part->kids.size() >= 3 && part->kids[2] &&
        (in_batch_labels.count(part->kids[2]->source) || contains_any(part->kids[2]->source, {"arange("})))
      add_once(out, "not_equivalent_by_nature", part->line);
  });
}

void judge_checkpointing(const Module& module, const Scan& scan, Judgement& out) {
  const bool dropout = scan.mentions("ropout");
  const bool off = scan.mentions("dropout=0.0") || scan.mentions("dropout = 0.0") ||
                   scan.mentions("Dropout(0.0)") || scan.mentions("Dropout(p=0.0)") ||
                   scan.mentions("dropout=0)");
  if (!dropout || off) return;
  each_expression_of(module.body, [&](const Expr* part) {
    if (part->kind != ExprKind::Call) return;
    for (const auto& [name, value] : part->keywords)
      if (name == "preserve_rng_state" && value && value->text == "False")
        add_once(out, "checkpoint_rng", part->line);
    for (std::size_t i = 0; i + 1 < part->kids.size(); ++i) {
      const Expr* dict = part->kids[i + 1];
      if (dict && dict->kind == ExprKind::Dict &&
          contains_any(dict->source, {"\"preserve_rng_state\": False", "'preserve_rng_state': False"}))
        add_once(out, "checkpoint_rng", part->line);
    }
  });
  // A checkpoint of one's own: recomputes in backward, and never mentions the random state.
  each_statement(module.body, [&](const Stmt* type) {
    if (type->kind != StmtKind::Class || type->bases.empty() ||
        !contains_any(type->bases[0]->source, {"Function"}))
      return;
    for (const Stmt* method : type->body)
      if (method->kind == StmtKind::Function && method->text == "backward" &&
          block_mentions(method->body, "enable_grad") && !scan.mentions("rng_state") &&
          !scan.mentions("fork_rng"))
        add_once(out, "checkpoint_rng", method->line);
  });
}

// Sums kept in bfloat16. Lossy for any N where the buffers are the script's own; for a model in pure bfloat16
// it matters when N is large (8 bits of mantissa: from the 32nd micro-batch on, a share is below 1/16 of an
// ulp step).
void judge_precision(const Module& module, const Scan& scan, Judgement& out) {
  const auto bf16 = [](std::string_view text) { return contains_any(text, {"bfloat16", "bf16"}); };
  const bool safe = scan.mentions("main_grad") || scan.mentions("master_") || scan.mentions("fp32_grad") ||
                    scan.mentions("get_peft_model") || scan.mentions("LoraConfig") ||
                    scan.mentions("autocast");
  each_statement(module.body, [&](const Stmt* statement) {
    for (const Expr* target : statement->targets) {
      const auto name = lower(target->source);
      if (!statement->value || !contains_any(name, {"grad", "accum", "buffer"}) ||
          contains_any(name, {"step"}))
        continue;
      const auto text = statement->value->source;
      if (bf16(text) &&
          contains_any(text, {"zeros_like", "zeros(", ".grad.to(", ".grad.bfloat16", ".grad.type("}))
        add_once(out, "bf16_accumulation", statement->line);
      if (contains_any(name, {"grad_accum_dtype", "accum_dtype", "grad_dtype"}) && bf16(text))
        add_once(out, "bf16_accumulation", statement->line);
    }
  });
  each_expression_of(module.body, [&](const Expr* part) {
    if (part->kind != ExprKind::Call) return;
    for (const auto& [name, value] : part->keywords)
      if (contains_any(name, {"grad_accum_dtype", "accum_dtype", "grad_accumulation_dtype"}) && value &&
          bf16(value->source))
        add_once(out, "bf16_accumulation", part->line);
    const Expr* function = part->kids.empty() ? nullptr : part->kids[0];
    if (safe || !function || scan.largest_window() < 32) return;
    const bool whole =
        (function->text == "bfloat16" && part->kids.size() == 1) ||
        (function->text == "to" && part->kids.size() > 1 && part->kids[1] && bf16(part->kids[1]->source)) ||
        std::any_of(part->keywords.begin(), part->keywords.end(), [&](const auto& keyword) {
          return (keyword.first == "torch_dtype" || keyword.first == "dtype") && keyword.second &&
                 bf16(keyword.second->source) && function->text == "from_pretrained";
        });
    if (whole && contains_any(lower(part->source.substr(0, 80)), {"model", "net"}))
      add_once(out, "bf16_accumulation", part->line);
  });
}

// N that changes while a modulo of a running count decides the boundary.
struct VaryingWalk {
  const Scan& scan;
  Judgement& out;
  std::vector<const Stmt*> loops;
  const Stmt* function = nullptr;  // the innermost that has no loop around the condition

  void block(const std::vector<Stmt*>& statements) {
    for (const Stmt* statement : statements) {
      const bool loop = statement->kind == StmtKind::For || statement->kind == StmtKind::While;
      if (loop) loops.push_back(statement);
      if (statement->kind == StmtKind::Function && loops.empty()) {
        const Stmt* outer = std::exchange(function, statement);
        block(statement->body);
        function = outer;
        continue;
      }
      if (loops.empty() && function && statement->kind == StmtKind::If &&
          (scan.effects(statement->body) & kDoesStep))
        follows_counter(statement->value);
      if (!loops.empty() && (statement->kind == StmtKind::If) && (scan.effects(statement->body) & kDoesStep))
        boundary(statement->value);
      if (!loops.empty() && statement->kind == StmtKind::Assign && statement->value &&
          contains_any(statement->value->source, {"%"}) &&
          contains_any(lower(statement->targets[0]->source), {"bound", "step", "sync", "update"}))
        boundary(statement->value);
      block(statement->body);
      block(statement->orelse);
      block(statement->handlers);
      if (loop) loops.pop_back();
    }
  }
  void boundary(const Expr* test) {
    each_expression(test, [&](const Expr* part) {
      if (part->kind != ExprKind::Binary || part->text != "%" || !part->kids[1]) return;
      const auto modulus = part->kids[1]->source;
      const Stmt* inner = loops.back();
      if (assigns(inner->body, modulus)) {
        add_once(out, "varying_accum_modulo", part->line);
        return;
      }
      // Set anew in an outer loop: harmless when the counter starts anew with it.
      const bool restarts = inner->kind == StmtKind::For && !inner->targets.empty() &&
                            counter_is_target(part->kids[0], inner->targets[0]);
      for (const Stmt* outer : loops)
        if (outer != inner && !restarts && assigns_outside(outer->body, modulus, inner)) {
          bool reset = false;
          each_expression(part->kids[0], [&](const Expr* name) {
            if (name->kind == ExprKind::Name && assigns_outside(outer->body, name->source, inner))
              reset = true;
          });
          if (!reset) add_once(out, "varying_accum_modulo", part->line);
        }
    });
  }
  // A method for one batch: N is computed anew from the counter that is divided by it.
  void follows_counter(const Expr* test) {
    each_expression(test, [&](const Expr* part) {
      if (part->kind != ExprKind::Binary || part->text != "%" || !part->kids[0] || !part->kids[1]) return;
      std::string_view counter = part->kids[0]->source;
      if (part->kids[0]->kind == ExprKind::Binary) counter = part->kids[0]->kids[0]->source;
      for (const Stmt* statement : function->body)
        if (statement->kind == StmtKind::Assign && statement->value && statement->targets.size() == 1 &&
            statement->targets[0]->source == part->kids[1]->source &&
            contains_any(statement->value->source, {counter}))
          add_once(out, "varying_accum_modulo", part->line);
    });
  }
  // N made smaller for the last window of an epoch is no change of N.
  static bool shrinks_for_tail(const Expr* value) {
    return value && contains_any(lower(value->source), {"last", "remain", "tail", "rest", "left", "len("});
  }
  static bool counter_is_target(const Expr* counter, const Expr* target) {
    bool found = false;
    each_expression(counter, [&](const Expr* part) {
      each_expression(target, [&](const Expr* name) {
        if (part->kind == ExprKind::Name && name->kind == ExprKind::Name && part->text == name->text)
          found = true;
      });
    });
    return found;
  }
  static bool assigns(const std::vector<Stmt*>& statements, std::string_view name) {
    return assigns_outside(statements, name, nullptr);
  }
  static bool assigns_outside(const std::vector<Stmt*>& statements, std::string_view name,
                              const Stmt* except) {
    for (const Stmt* statement : statements) {
      if (statement == except) continue;
      if (statement->kind == StmtKind::Assign || statement->kind == StmtKind::AugAssign)
        for (const Expr* target : statement->targets)
          if (target->source == name && !shrinks_for_tail(statement->value)) return true;
      if (assigns_outside(statement->body, name, except) || assigns_outside(statement->orelse, name, except))
        return true;
    }
    return false;
  }
};

void add_notes(const Scan& scan, Judgement& out) {
  bool scale = false;
  int line = 0;
  for (const Finding& finding : out.findings)
    if (finding.kind == "no_division" || finding.kind == "double_division" ||
        finding.kind == "custom_loss_bypass" || finding.kind == "divide_after_backward") {
      scale = true;
      line = finding.line;
    }
  if (scale && (scan.mentions("Adam") || scan.mentions("adam")))
    add_finding(out, make_finding("adam_masks_scale", line));
}

}  // namespace

void judge_source(const Module& module, const Scan& scan, Judgement& out) {
  if (!out.trains || !out.accumulates) return;
  judge_nature(module, scan, out);
  judge_checkpointing(module, scan, out);
  judge_precision(module, scan, out);
  VaryingWalk{scan, out, {}}.block(module.body);
  judge_resuming(module, scan, out);
  judge_counts(module, scan, out);
  judge_mean_by_count(module, scan, out);
  add_notes(scan, out);
}

}  // namespace batchwright::check
