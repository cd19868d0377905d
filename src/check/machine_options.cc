// What a program does when nobody sets its options.
#include "check/machine.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

// getattr(settings, "name", default) and settings.get("name", default): the name and where it stands.
const Expr* asked_by_name(const Expr* call, std::size_t& place) {
  const auto name = called_name(call);
  place = name == "getattr" ? 2 : name == "get" ? 1 : 0;
  if (place == 0 || call->kids.size() <= place || !call->kids[place]) return nullptr;
  return call->kids[place]->kind == ExprKind::String ? call->kids[place] : nullptr;
}

}  // namespace

std::optional<Value> Machine::default_value(const Expr* expression) {
  if (!expression) return std::nullopt;
  std::string_view name;
  const Expr* otherwise = nullptr;
  if (expression->kind == ExprKind::Call) {
    std::size_t place = 0;
    const Expr* asked = asked_by_name(expression, place);
    if (!asked) return std::nullopt;  // what another call does is not repeated for its value
    name = asked->text;
    if (place + 1 < expression->kids.size()) otherwise = expression->kids[place + 1];
  } else if (expression->kind == ExprKind::Name || expression->kind == ExprKind::Attribute ||
             expression->kind == ExprKind::Subscript) {
    const Value value = evaluate(expression);
    if (!value.opaque()) return value;
    name = last_part(value.name && !value.has_terms() ? std::string_view(*value.name) : expression->source);
    if (!scan_.options().find(name)) name = last_part(expression->source);
  } else if (expression->kind == ExprKind::Constant || expression->kind == ExprKind::Number ||
             expression->kind == ExprKind::String || expression->kind == ExprKind::Unary) {
    return evaluate(expression);
  }
  // An optimizer or scheduler that is None by default is given by whoever trains.
  if (role_of_name(name) != Role::None) return std::nullopt;
  if (const OptionDefault* option = scan_.options().find(name))
    return option->written ? evaluate(option->written) : bool_value(option->flag);
  return otherwise ? std::optional<Value>(evaluate(otherwise)) : std::nullopt;
}

std::optional<bool> Machine::closes_on_tokens(const Expr* compare) {
  const auto op = compare->text;
  const bool above = op == ">=" || op == ">";
  if (loops_ == 0 || (!above && op != "<" && op != "<=")) return std::nullopt;
  const auto counts = [&](const Expr* side) {
    return side && (side->kind == ExprKind::Name || side->kind == ExprKind::Attribute) &&
           contains_any(lower(last_part(side->source)), {"tok", "frames"}) && scan_.restarts(side->source);
  };
  const bool left = counts(compare->kids[0]);
  if (!left && !counts(compare->kids[1])) return std::nullopt;
  trace_.dynamic_windows = trace_.token_windows = true;
  const bool full = ++token_asks_ >= token_window_;
  if (full) {
    token_asks_ = 0;
    token_window_ = token_window_ == 3 ? 6 : 3;
  }
  return full == (left == above);
}

std::optional<bool> Machine::default_side(const Expr* condition) {
  if (!condition || !spend()) return std::nullopt;
  if (condition->kind == ExprKind::Unary && condition->text == "not" && !condition->kids.empty()) {
    const auto side = default_side(condition->kids[0]);
    return side ? std::optional<bool>(!*side) : std::nullopt;
  }
  if (condition->kind == ExprKind::Binary && is_one_of(condition->text, {"and", "or"})) {
    const bool is_and = condition->text == "and";
    const auto left = default_side(condition->kids[0]), right = default_side(condition->kids[1]);
    if ((left && *left != is_and) || (right && *right != is_and)) return !is_and;
    return left && right ? std::optional<bool>(is_and) : std::nullopt;
  }
  if (condition->kind != ExprKind::Compare) {
    const auto value = default_value(condition);
    return value ? truth(*value) : std::nullopt;
  }
  const auto left = default_value(condition->kids[0]), right = default_value(condition->kids[1]);
  if (!left || !right || left->opaque() || right->opaque()) return std::nullopt;
  const auto op = condition->text;
  const bool equality = is_one_of(op, {"==", "!=", "is", "is not"});
  const bool wanted = op == "==" || op == "is";
  if (left->is(Type::None) || right->is(Type::None))
    return equality ? std::optional<bool>((left->is(Type::None) && right->is(Type::None)) == wanted)
                    : std::nullopt;
  if (left->is(Type::String) && right->is(Type::String) && equality)
    return (*left->name == *right->name) == wanted;
  const auto x = as_number(*left), y = as_number(*right);
  if (!x || !y) return std::nullopt;
  if (equality) return (x->number == y->number) == wanted;
  if (op == "<") return x->number < y->number;
  if (op == "<=") return x->number <= y->number;
  if (op == ">") return x->number > y->number;
  if (op == ">=") return x->number >= y->number;
  return std::nullopt;
}

}  // namespace batchwright::check
