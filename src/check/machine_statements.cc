#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

// "x is not None", "not x", "x == True" and "x" ask one question; returns its text and whether it is negated.
std::pair<std::string, bool> question(const Expr* condition) {
  bool negated = false;
  for (;;) {
    if (condition->kind == ExprKind::Unary && condition->text == "not" && !condition->kids.empty()) {
      negated = !negated;
      condition = condition->kids[0];
    } else if (condition->kind == ExprKind::Compare && condition->kids[1]->kind == ExprKind::Constant &&
               (condition->kids[1]->text == "None" || condition->kids[1]->text == "False")) {
      if (condition->text == "is" || condition->text == "==") negated = !negated;
      condition = condition->kids[0];
    } else {
      break;
    }
  }
  std::string text;
  for (char c : condition->source.substr(0, 160))
    if (c != ' ' && c != '\n' && c != '\\') text += c;
  // A bare count: "N > 1" asks whether there is accumulation.
  const std::string word = lower(text);
  if (contains_any(word, {"amp", "fp16", "scaler", "mixed_precision", "autocast", "half"}) &&
      !contains_any(word, {"sample", "example", "clamp", "%"}))
    text = "(mixed precision)";
  return {text, negated};
}

// A condition that asks whether there is accumulation at all, of an N whose name leaves it open.
std::optional<bool> meets_one(const Expr* condition) {
  if (condition->kind != ExprKind::Compare || !condition->kids[0] || !condition->kids[1] ||
      condition->kids[1]->kind != ExprKind::Number || condition->kids[1]->number > 1 ||
      lower(last_part(condition->kids[0]->source)).find("accum") == std::string::npos ||
      (condition->kids[0]->kind != ExprKind::Name && condition->kids[0]->kind != ExprKind::Attribute))
    return std::nullopt;
  if (is_one_of(condition->text, {">", ">=", "!="})) return true;
  if (is_one_of(condition->text, {"==", "<", "<="})) return false;
  return std::nullopt;
}

}  // namespace

Flow Machine::execute(const std::vector<Stmt*>& block) {
  for (const Stmt* statement : block) {
    const Flow flow = execute(statement);
    if (flow != Flow::Normal) return flow;
    if (budget_ <= 0) return Flow::Return;
  }
  return Flow::Normal;
}

Flow Machine::execute(const Stmt* statement) {
  if (!spend()) return Flow::Return;
  line_ = statement->line;
  switch (statement->kind) {
    case StmtKind::Expression:
      evaluate(statement->value);
      return Flow::Normal;
    case StmtKind::Assign:
      execute_assign(statement);
      return Flow::Normal;
    case StmtKind::AugAssign:
      execute_augmented(statement);
      return Flow::Normal;
    case StmtKind::If:
      return execute_if(statement);
    case StmtKind::For:
      return execute_for(statement);
    case StmtKind::While:
      return execute_while(statement);
    case StmtKind::With:
      return execute_with(statement);
    case StmtKind::Try:
      return execute_try(statement);
    case StmtKind::Function:
    case StmtKind::Class:
      define(statement);
      return Flow::Normal;
    case StmtKind::Return: {
      Value result = statement->value ? evaluate(statement->value) : none_value();
      if (statement->value) {
        Library{*this}.report_returned(result, statement->line);
        if (statement->value->kind == ExprKind::Binary && statement->value->text == "/")
          Library{*this}.note_division(result, statement->line);
      }
      returned_ = std::move(result);
      return Flow::Return;
    }
    case StmtKind::Break:
      return Flow::Break;
    case StmtKind::Continue:
      return Flow::Continue;
    case StmtKind::Raise:
      return Flow::Raise;
    case StmtKind::Import:
      for (const auto& [local, dotted] : statement->imports) scope_->set(local, named(dotted));
      return Flow::Normal;
    case StmtKind::Global:
      for (const Expr* target : statement->targets)
        if (target->kind == ExprKind::Name) scope_->outer.push_back(target->text);
      return Flow::Normal;
    default:
      return Flow::Normal;
  }
}

void Machine::define(const Stmt* statement) {
  Value made;
  made.type = statement->kind == StmtKind::Function ? Type::Function : Type::Class;
  made.heap = std::make_shared<Heap>();
  made.heap->definition = statement;
  made.heap->scope = scope_;
  scope_->set(statement->text, std::move(made));
}

// Whether all that is open in a condition is how the program was launched, not where in a window it is.
bool Machine::asks_of_set_up(const Expr* condition) {
  const bool joins = condition->kind == ExprKind::Binary || condition->kind == ExprKind::Unary;
  if (joins && is_one_of(condition->text, {"and", "or", "not"})) {
    for (const Expr* part : condition->kids)
      if (part && !asks_of_set_up(part)) return false;
    return true;
  }
  return truth(evaluate(condition)) ||
         contains_any(lower(condition->source),
                      {"isinstance", "hasattr", "ddp", "distributed", "world", "rank", "gpu", "parallel",
                       "is_initialized", "fsdp", "engine", "deepspeed", "use_", "strategy", "none"});
}

bool Machine::decide(const Expr* condition, std::uint32_t then_effects, std::uint32_t else_effects) {
  const auto known = truth(evaluate(condition));
  if (known) return *known;
  if (((then_effects | else_effects) & kEntersContext) && !asks_of_set_up(condition))
    trace_.open_exchange = true;
  return decide_open(condition, then_effects, else_effects);
}

bool Machine::decide_open(const Expr* condition, std::uint32_t then_effects, std::uint32_t else_effects) {
  const auto [text, negated] = question(condition);
  const std::string word = lower(text);
  const auto chosen = world_.choices.find(text);
  if (chosen != world_.choices.end()) {
    decisions_[text] = chosen->second;
    return chosen->second != negated;
  }
  if (const auto met = meets_one(condition)) return *met;
  // Healthy numbers: the branch for a NaN is never the ordinary one.
  if (contains_any(word, {"isnan", "isinf", "overflow"})) return negated;
  if (contains_any(word, {"isfinite", "is_grad_enabled", ".requires_grad"})) return !negated;
  const bool only_leaves = (then_effects & kLeaves) && !(then_effects & kTraining);
  if (only_leaves && !(else_effects & kTraining)) return false;
  const std::uint32_t effects = (then_effects | else_effects) & kTraining;
  bool usual = usual_side(text) != negated;
  // What an option's default says holds, except of the modes of training: a script is written for all of
  // them.
  if (effects && !(effects & (kDoesBackward | kDoesStep | kEntersContext)) && text != "(mixed precision)")
    if (const auto side = default_side(condition)) {
      usual = *side;
      if ((effects & ~(kDoesDivide | kDoesZero | kChooses)) == 0) return usual;
    }
  if (effects) {
    decisions_.emplace(text, usual != negated);
    decided_effects_[text] |= text == "(mixed precision)" ? kTraining : effects;
    // A condition that changes with every iteration and decides over the step is a boundary that cannot be
    // seen.
    const bool per_iteration =
        contains_any(text, {"(", "%"}) &&
        !contains_any(word, {"isinstance", "hasattr", "getattr", "is_available", "is_initialized",
                             "world_size", "rank", "exists", "len(", "callable", "any(", "all(", "random",
                             "print", "get(", "float(", "int(", "str(", "type("});
    if (loops_ > 0 && (then_effects & kDoesStep) && !(then_effects & kDoesBackward) &&
        !(else_effects & kDoesStep) && per_iteration) {
      trace_.unknown_boundary = true;
      trace_.unknown_what = text;
    }
    return usual;
  }
  return usual;
}

Flow Machine::execute_if(const Stmt* statement) {
  const double outer = period_counter_;
  const bool then =
      decide(statement->value, scan_.effects(statement->body), scan_.effects(statement->orelse));
  const Flow flow = execute(then ? statement->body : statement->orelse);
  period_counter_ = outer;
  return flow;
}

void Machine::execute_assign(const Stmt* statement) {
  if (!statement->value) return;
  Value value = evaluate(statement->value);
  const Expr* written = statement->value;
  if (written->kind == ExprKind::Binary && written->text == "/" && statement->targets.size() == 1 &&
      written->kids[0] && written->kids[0]->source == statement->targets[0]->source)
    Library{*this}.note_division(value, statement->line);
  for (const Expr* target : statement->targets) assign(target, value, statement->value);
}

void Machine::execute_augmented(const Stmt* statement) {
  const Expr* target = statement->targets.empty() ? nullptr : statement->targets[0];
  if (!target || !statement->value) return;
  const Value left = evaluate(target);
  Value right = evaluate(statement->value);
  const auto op = statement->text;
  if ((op == "/" || op == "*" || op == "%") && statement->value->kind == ExprKind::Number &&
      window_literal(statement->value->number) > 0)
    right = number_value(window_literal(statement->value->number), kAccumulation);
  if (left.is(Type::Object) && left.heap->role == Role::Gradient) {
    Library{*this}.scale_gradients(right, op, statement->line);
    return;
  }
  if (right.is(Type::Object) && right.heap->role == Role::Gradient) {  // p.data -= lr * p.grad
    if (op == "-" || op == "+")
      Library{*this}.step(Library{*this}.optimizer_id(named("manual")), statement->line, false);
    return;
  }
  if (left.is(Type::Sequence) && op == "+") {
    auto& items = left.heap->items;
    if (right.is(Type::Sequence) && items.size() < 256)
      items.insert(items.end(), right.heap->items.begin(), right.heap->items.end());
    return;
  }
  Value result = binary(op, left, right, target);
  if (left.is(Type::Object) && left.heap->role == Role::Cell) {
    left.heap->items[0] = std::move(result);
    return;
  }
  if ((op == "/" || op == "*") && result.has_terms() && (right.taint & kAccumulation))
    Library{*this}.note_division(result, statement->line);
  // Counting open things: a counter that starts open stays a counter.
  if (result.is(Type::Number) && (op == "+" || op == "-")) result.taint |= kIndex;
  assign(target, std::move(result), target);
}

}  // namespace batchwright::check
