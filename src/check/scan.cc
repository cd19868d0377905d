#include "check/scan.h"

#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

// PyTorch's name, and PaddlePaddle's.
bool zeroes_by_name(std::string_view name) {
  return is_one_of(name, {"zero_grad", "clear_grad", "clear_gradients"});
}

const Expr* callee(const Expr* call) { return call->kids.empty() ? nullptr : call->kids[0]; }

std::string_view called_name(const Expr* call) {
  const Expr* function = callee(call);
  if (!function) return {};
  return function->kind == ExprKind::Name || function->kind == ExprKind::Attribute ? function->text
                                                                                   : std::string_view{};
}

std::string_view receiver(const Expr* call) {
  const Expr* function = callee(call);
  return function && function->kind == ExprKind::Attribute && function->kids[0] ? function->kids[0]->source
                                                                                : std::string_view{};
}

}  // namespace

Scan::Scan(const Module& module, std::string_view source) : source_(source) {
  collect(module.body, nullptr);
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::AugAssign && statement->text == "+" && !statement->targets.empty() &&
        statement->value && statement->value->kind == ExprKind::Number && statement->value->number == 1)
      counters_.insert(statement->targets[0]->source);
    each_own_expression(statement, [&](const Expr* part) {
      if (part->kind == ExprKind::Name || part->kind == ExprKind::Attribute) {
        if (names_accumulation(part->text)) accumulates_ = true;
      }
      if (part->kind != ExprKind::Call) return;
      const auto name = called_name(part);
      called_.insert(name);
      for (const auto& [keyword, value] : part->keywords)
        if (names_accumulation(keyword) && !(value->kind == ExprKind::Number && value->number <= 1))
          accumulates_ = true;
      if (name == "step" || name == "apply_gradients" || name == "minimize")
        step_receivers_.insert(last_part(receiver(part)));
      if (name == "step" && part->kids.size() > 1) step_receivers_.insert(last_part(part->kids[1]->source));
      if (zeroes_by_name(name)) zero_receivers_.insert(last_part(receiver(part)));
      if (name == "MultiSteps") accumulates_ = true;
    });
    for (const auto& parameter : statement->parameters)
      if (names_accumulation(parameter.name)) accumulates_ = true;
  });
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind != StmtKind::For || !statement->value) return;
    const Expr* iterable = statement->value;
    while (iterable->kind == ExprKind::Call && iterable->kids.size() > 1 && iterable->kids[1] &&
           is_one_of(called_name(iterable), {"enumerate", "tqdm", "list", "iter"}))
      iterable = iterable->kids[1];
    if (iterable->kind != ExprKind::Name) return;
    const Nest& place = nest(statement);
    if (place.backward && !place.step && !place.inner_backward) window_iterables_.insert(iterable->source);
  });
  find_windows(module.body);
  note_literals(module.body);
}

void Scan::collect(const std::vector<Stmt*>& block, const Stmt* owner) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::Function) {
      functions_.push_back({statement, owner});
      by_name_[statement->text].push_back(functions_.back());
      collect(statement->body, nullptr);
    } else if (statement->kind == StmtKind::Class) {
      classes_.emplace(statement->text, statement);
      collect(statement->body, statement);
    } else {
      collect(statement->body, owner);
      collect(statement->orelse, owner);
      collect(statement->handlers, owner);
    }
  }
}

// A modulus in the condition of an `if` that leads to a step is N, whatever it is called.
void Scan::find_windows(const std::vector<Stmt*>& block) {
  each_statement(block, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::If && (effects(statement->body) & kDoesStep))
      note_windows(statement->value);
    if (statement->kind == StmtKind::If && !statement->body.empty() &&
        statement->body.back()->kind == StmtKind::Continue)
      note_windows(statement->value);
    if (statement->kind == StmtKind::Assign && statement->value && statement->targets.size() == 1) {
      const auto name = lower(statement->targets[0]->source);
      if (contains_any(name, {"step", "sync", "bound", "update", "accum", "last"}))
        note_windows(statement->value);
    }
  });
}

void Scan::note_windows(const Expr* condition) {
  each_expression(condition, [&](const Expr* part) {
    if (part->kind == ExprKind::Compare && (part->text == "==" || part->text == ">=") && part->kids[0] &&
        part->kids[1] && counters_.count(part->kids[0]->source) &&
        (part->kids[1]->kind == ExprKind::Name || part->kids[1]->kind == ExprKind::Attribute) &&
        !contains_any(lower(part->kids[1]->source),
                      {"max", "total", "epoch", "warm", "start", "min", "thresh", "learn", "end", "stop",
                       "limit", "len", "last", "num_steps", "iters", "budget"})) {
      window_names_.insert(part->kids[1]->source);
      window_names_.insert(last_part(part->kids[1]->source));
      accumulates_ = true;
    }
    if (part->kind != ExprKind::Binary || part->text != "%" || !part->kids[1]) return;
    const Expr* modulus = part->kids[1];
    const auto word = lower(modulus->source);
    if (contains_any(word, {"log", "print", "eval", "save", "ckpt", "checkpoint", "sample", "vis", "len("}))
      return;
    if (modulus->kind == ExprKind::Number && modulus->number > 1 && modulus->number <= 256) {
      window_literals_.insert(modulus->number);
      accumulates_ = true;
    }
    if (modulus->kind == ExprKind::Name || modulus->kind == ExprKind::Attribute ||
        modulus->kind == ExprKind::Subscript) {
      window_names_.insert(modulus->source);
      window_names_.insert(last_part(modulus->source));
      accumulates_ = true;
    }
  });
}

// A literal given to a name of N stands for N wherever it divides.
void Scan::note_literals(const std::vector<Stmt*>& block) {
  const auto note = [&](std::string_view name, const Expr* value) {
    if (value && value->kind == ExprKind::Number && value->number > 1 && value->number <= 4096 &&
        (names_accumulation(name) || is_window_name(name)))
      window_literals_.insert(value->number);
  };
  each_statement(block, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::AugAssign && !statement->targets.empty() &&
        names_accumulation(statement->targets[0]->source) && statement->value &&
        contains_any(lower(statement->value->source), {"world", "process", "gpu", "device", "replica"}))
      splits_by_world_ = true;
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 && statement->value &&
        names_accumulation(statement->targets[0]->source) &&
        names_accumulation(statement->value->source.substr(0, statement->value->source.find('/'))) &&
        contains_any(lower(statement->value->source), {"world", "process"}))
      splits_by_world_ = true;
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1)
      note(statement->targets[0]->source, statement->value);
    for (const auto& parameter : statement->parameters) note(parameter.name, parameter.fallback);
    each_own_expression(statement, [&](const Expr* part) {
      for (const auto& [keyword, value] : part->keywords) note(keyword, value);
    });
  });
}

const Stmt* Scan::find_class(std::string_view name) const {
  const auto found = classes_.find(name);
  return found == classes_.end() ? nullptr : found->second;
}

const Stmt* Scan::find_method(const Stmt* owner, std::string_view name) const {
  for (int depth = 0; owner && depth < 8; ++depth) {
    for (const Stmt* statement : owner->body)
      if (statement->kind == StmtKind::Function && statement->text == name) return statement;
    const Stmt* next = nullptr;
    for (const Expr* base : owner->bases)
      if (base && !next) next = find_class(last_part(base->source));
    owner = next == owner ? nullptr : next;
  }
  return nullptr;
}

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

bool Scan::names_optimizer() const {
  for (const auto receiver : step_receivers_) {
    const Role role = role_of_name(receiver);
    if (role == Role::Optimizer || role == Role::Engine || role == Role::Scaler) return true;
  }
  return false;
}

const Definition* Scan::callee_of(const Expr* call) const {
  const auto known = by_name_.find(called_name(call));
  if (known == by_name_.end()) return nullptr;
  const Expr* function = callee(call);
  const bool attribute = function->kind == ExprKind::Attribute;
  const auto on = receiver(call);
  // model.train() is not the file's train(): names that every model or optimizer has mean the file's own
  // method only on self.
  const bool common = is_one_of(function->text, {"train", "eval", "step", "update", "forward", "zero_grad",
                                                 "to", "log", "backward", "fit", "run"});
  for (const Definition& one : known->second) {
    const bool method =
        one.owner || (!one.function->parameters.empty() && one.function->parameters[0].name == "self");
    if (!attribute && !one.owner) return &one;
    if (attribute && method && (on == "self" || !common)) return &one;
    if (attribute && method && common && find_class(on) == nullptr && role_of_name(on) == Role::None &&
        !contains_any(lower(last_part(on)), {"model", "net", "encoder", "decoder", "critic", "actor",
                                             "generator", "policy", "bar"}))
      return &one;
  }
  return nullptr;
}

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
  if (name == "backward" || name == "manual_backward" || name == "value_and_grad" || name == "gradient" ||
      name == "backward_step" || (name == "grad" && contains_any(on, {"autograd", "jax"})))
    return kDoesBackward;
  if (zeroes_by_name(name)) return kDoesZero;
  if (is_one_of(name, {"loss_scaler", "native_scaler", "amp_scaler"}) && call->kids.size() > 2)
    return kDoesBackward | kDoesStep;
  if (contains_any(name, {"clip_grad", "clip_by_global_norm", "clip_gradients"})) return kDoesClip;
  if (name == "unscale_" || name == "unscale_gradients") return kDoesUnscale;
  if (name == "apply_gradients" || name == "apply_updates" || name == "minimize") return kDoesStep;
  if (name == "no_sync" || name == "accumulate" || name == "no_backward_sync") return kEntersContext;
  if (on == "self")
    if (const Definition* own = callee_of(call))
      return effects(own->function->body) & ~static_cast<std::uint32_t>(kLeaves);
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
