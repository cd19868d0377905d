#include "check/scan.h"

#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {

Scan::Scan(const Module& module, std::string_view source) : source_(source), options_(module) {
  collect(module.body, nullptr);
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::AugAssign && statement->text == "+" && !statement->targets.empty())
      sums_.insert(statement->targets[0]->source);
    if (statement->kind == StmtKind::Assign && statement->value &&
        statement->value->kind == ExprKind::Number && statement->value->number == 0)
      for (const Expr* target : statement->targets) ++zeroed_[target->source];
    if (statement->kind == StmtKind::AugAssign && statement->text == "+" && !statement->targets.empty() &&
        statement->value && statement->value->kind == ExprKind::Number && statement->value->number == 1)
      counters_.insert(statement->targets[0]->source);
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 && statement->value &&
        statement->value->kind == ExprKind::Call &&
        contains_any(statement->value->source, {"value_and_grad(", "jax.grad("}))
      gradient_functions_.insert(last_part(statement->targets[0]->source));
    each_own_expression(statement, [&](const Expr* part) {
      if (part->kind == ExprKind::Attribute && part->text == "param_groups" && part->kids[0])
        grouped_.insert(last_part(part->kids[0]->source));
      if (part->kind == ExprKind::Name || part->kind == ExprKind::Attribute) {
        if (names_accumulation(part->text)) accumulates_ = names_window_ = true;
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
      if (name == "backward" && part->kids.size() > 1) drivers_.insert(last_part(receiver(part)));
      if (zeroes_by_name(name)) zero_receivers_.insert(last_part(receiver(part)));
      if (name == "MultiSteps") accumulates_ = true;
    });
    for (const auto& parameter : statement->parameters) {
      parameters_.insert(parameter.name);
      if (names_accumulation(parameter.name)) accumulates_ = names_window_ = true;
    }
  });
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind != StmtKind::For || !statement->value) return;
    const Expr* iterable = statement->value;
    if (iterable->kind == ExprKind::Call && iterable->kids.size() == 2 && iterable->kids[1] &&
        is_one_of(called_name(iterable), {"range", "trange"}) &&
        (iterable->kids[1]->kind == ExprKind::Name || iterable->kids[1]->kind == ExprKind::Attribute)) {
      const Nest& place = nest(statement);
      if (place.backward && !place.step && !place.inner_backward) {
        window_names_.insert(iterable->kids[1]->source);
        window_names_.insert(last_part(iterable->kids[1]->source));
      }
      if (place.backward && place.step && !place.inner_backward)
        micro_bounds_.insert(last_part(iterable->kids[1]->source));
      return;
    }
    while (iterable->kind == ExprKind::Call && iterable->kids.size() > 1 && iterable->kids[1] &&
           is_one_of(called_name(iterable), {"enumerate", "tqdm", "list", "iter"}))
      iterable = iterable->kids[1];
    if (iterable->kind != ExprKind::Name) return;
    const Nest& place = nest(statement);
    if (place.backward) looped_.insert(iterable->source);
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
    if (names_epoch_period(modulus->source)) return;
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
      for (std::size_t i = 0; part->kind == ExprKind::Dict && i + 1 < part->kids.size(); i += 2)
        if (part->kids[i] && part->kids[i]->kind == ExprKind::String &&
            names_accumulation(part->kids[i]->text)) {
          note(part->kids[i]->text, part->kids[i + 1]);
          const Expr* steps = part->kids[i + 1];
          if (!steps || steps->kind != ExprKind::Number || steps->number > 1) accumulates_ = true;
        }
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

bool Scan::speaks_of_accumulation(const std::vector<Stmt*>& block) const {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) continue;
    bool found = false;
    each_own_expression(statement, [&](const Expr* part) {
      const bool name = part->kind == ExprKind::Name || part->kind == ExprKind::Attribute;
      found = found || part->text == "accumulate" || part->text == "no_sync" ||
              (name && (names_accumulation(part->text) || is_window_name(part->source))) ||
              (part->kind == ExprKind::String && names_accumulation(part->text)) ||
              (part->kind == ExprKind::Binary && part->text == "%" && part->kids[1] &&
               part->kids[1]->kind == ExprKind::Number && is_window_literal(part->kids[1]->number));
      for (const auto& [keyword, value] : part->keywords) found = found || names_accumulation(keyword);
    });
    if (found || speaks_of_accumulation(statement->body) || speaks_of_accumulation(statement->orelse) ||
        speaks_of_accumulation(statement->handlers))
      return true;
  }
  return false;
}

bool Scan::is_gluon_step(std::string_view name, std::string_view receiver) const {
  return (name == "step" || name == "update") && mentions("mxnet") &&
         contains_any(lower(last_part(receiver)), {"trainer"});
}

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

}  // namespace batchwright::check
