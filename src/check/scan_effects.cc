// What code can do to a training, found by the names of what it calls.
#include "check/roles.h"
#include "check/scan.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

// What loops and functions inside a loop's body do, as far as calls can be followed by name.
struct NestWalk {
  const Scan& scan;
  Nest& nest;
  int depth = 0;

  void block(const std::vector<Stmt*>& statements) {
    for (const Stmt* statement : statements) {
      if (statement->kind == StmtKind::For || statement->kind == StmtKind::While) {
        const auto effects = scan.effects(statement->body);
        nest.inner_backward = nest.inner_backward || (effects & kDoesBackward);
        nest.inner_step = nest.inner_step || (effects & kDoesStep);
        continue;
      }
      if (statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) continue;
      block(statement->body);
      block(statement->orelse);
      block(statement->handlers);
      each_own_expression(statement, [&](const Expr* part) { call(part); });
    }
  }
  void call(const Expr* part) {
    if (part->kind != ExprKind::Call || depth > 5) return;
    const Definition* local = scan.callee_of(part);
    if (!local || !(scan.effects(local->function->body) & (kDoesBackward | kDoesStep))) return;
    ++depth;
    block(local->function->body);
    --depth;
  }
};

}  // namespace

const Nest& Scan::nest(const Stmt* loop) const {
  const auto known = nests_.find(loop);
  if (known != nests_.end()) return known->second;
  Nest& nest = nests_[loop];
  const auto found = effects(loop->body);
  nest.backward = found & kDoesBackward;
  nest.step = found & kDoesStep;
  if (nest.backward) NestWalk{*this, nest}.block(loop->body);
  return nest;
}

std::uint32_t Scan::call_effects(const Expr* call) const {
  const auto name = called_name(call);
  const auto on = receiver(call);
  for (const auto& [keyword, value] : call->keywords)  // Trainer(..., compute_loss_func=f) trains with f
    if (keyword == "compute_loss_func") return kDoesBackward | kDoesStep;
  if (name == "backward" || name == "manual_backward" || name == "value_and_grad" || name == "gradient" ||
      name == "backward_step" || (name == "grad" && contains_any(on, {"autograd", "jax"})))
    return kDoesBackward;
  if (gradient_functions_.count(name)) return kDoesBackward;
  if (zeroes_by_name(name) || (name == "zero" && contains_any(on, {"tape"}))) return kDoesZero;
  if (is_one_of(name, {"loss_scaler", "native_scaler", "amp_scaler"}) && call->kids.size() > 2)
    return kDoesBackward | kDoesStep;
  if (contains_any(name, {"clip_grad", "clip_by_global_norm", "clip_gradients"})) return kDoesClip;
  if (name == "unscale_" || name == "unscale_gradients") return kDoesUnscale;
  if (name == "apply_gradients" || name == "apply_updates" || name == "minimize") return kDoesStep;
  if (on == "self")
    if (const Definition* own = callee_of(call))
      return (effects(own->function->body) & ~static_cast<std::uint32_t>(kLeaves)) |
             (name == "no_sync" ? kEntersContext : 0u);
  if (name == "no_sync" || name == "accumulate" || name == "no_backward_sync") return kEntersContext;
  if (is_gluon_step(name, on)) return kDoesStep;
  if (name == "step" || name == "optimizer_step") {
    const Role role = role_of_name(on);
    if (role == Role::Scheduler) return kDoesSchedule;
    if (role == Role::Ema) return kDoesEma;
    if (role != Role::None) return kDoesStep;
    if (call->kids.size() > 1 && role_of_name(call->kids[1]->source) != Role::Optimizer) return 0;
    if (contains_any(lower(on), {"prof", "env", "bar", "timer", "progress"})) return 0;
    return kDoesStep;
  }
  if (name == "cond") {  // calls one of its branches
    std::uint32_t found = 0;
    for (std::size_t i = 2; i < call->kids.size(); ++i)
      if (const auto branch = by_name_.find(call->kids[i] ? call->kids[i]->text : "");
          branch != by_name_.end())
        found |= effects(branch->second.front().function->body) & ~static_cast<std::uint32_t>(kLeaves);
    return found;
  }
  if (name.ends_with("grad_hook")) {  // what the hook does, every backward will do
    for (std::size_t i = 1; i < call->kids.size(); ++i)
      if (const auto hook = by_name_.find(call->kids[i] ? call->kids[i]->text : ""); hook != by_name_.end())
        return effects(hook->second.front().function->body) & ~static_cast<std::uint32_t>(kLeaves);
  }
  const Definition* local = callee_of(call);
  return local ? effects(local->function->body) & ~static_cast<std::uint32_t>(kLeaves) : 0;
}

std::uint32_t Scan::effects(const Expr* expression) const {
  std::uint32_t found = 0;
  each_expression(expression, [&](const Expr* part) {
    if (part->kind == ExprKind::Call) found |= call_effects(part);
  });
  return found;
}

std::uint32_t Scan::own_effects(const Stmt* statement) const {
  std::uint32_t found = effects(statement->value);
  for (const auto& [context, target] : statement->items) found |= effects(context);
  switch (statement->kind) {
    case StmtKind::Continue:
    case StmtKind::Break:
    case StmtKind::Return:
    case StmtKind::Raise:
      found |= kLeaves;
      break;
    case StmtKind::Assign:
    case StmtKind::AugAssign:
      for (const Expr* target : statement->targets) {
        const auto name = lower(target->source);
        if (names_accumulation(name) || is_window_name(target->source)) found |= kDoesDivide;
        if (name.find("loss") != std::string::npos && statement->value &&
            (contains_any(statement->text, {"/", "*"}) || contains_any(statement->value->source, {"/", "*"})))
          found |= kDoesDivide;
        if (name.ends_with(".grad")) found |= kDoesZero;
      }
      break;
    default:
      break;
  }
  return found;
}

std::uint32_t Scan::effects(const Stmt* statement) const {
  if (statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) return 0;
  const auto known = effects_.find(statement);
  if (known != effects_.end()) return known->second;
  if (depth_ > 200) return 0;
  ++depth_;
  effects_[statement] = 0;  // recursion sees nothing new here
  std::uint32_t found = own_effects(statement);
  found |= effects(statement->body) | effects(statement->orelse) | effects(statement->handlers);
  --depth_;
  effects_[statement] = found;
  return found;
}

std::uint32_t Scan::effects_with_inner(const std::vector<Stmt*>& block) const {
  std::uint32_t found = effects(block);
  each_statement(block, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::Function) found |= effects(statement->body);
  });
  return found;
}

std::uint32_t Scan::effects(const std::vector<Stmt*>& block) const {
  std::uint32_t found = 0;
  for (const Stmt* statement : block) found |= effects(statement);
  return found;
}

}  // namespace batchwright::check
