// Operators: arithmetic on numbers and losses, comparisons, logic.
#include <cmath>

#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {

using Type = Value::Type;

namespace {

// Whether the left side measures something: len(x), x.size(0), x.shape[0].
bool is_own_size(const Expr* division) {
  const Expr* left = division && division->kids.size() == 2 ? division->kids[0] : nullptr;
  if (!left) return false;
  if (left->kind == ExprKind::Call)
    return is_one_of(left->kids.empty() || !left->kids[0] ? "" : left->kids[0]->text, {"len", "size"});
  return left->kind == ExprKind::Subscript && left->source.find(".shape[") != std::string_view::npos;
}

// Names, numbers and lengths, and what the four operations make of them.
bool is_plain_arithmetic(const Expr* expression) {
  if (!expression) return false;
  if (expression->kind == ExprKind::Binary)
    return is_plain_arithmetic(expression->kids[0]) && is_plain_arithmetic(expression->kids[1]);
  if (expression->kind == ExprKind::Call)
    return !expression->kids.empty() && expression->kids[0] && expression->kids[0]->text == "len";
  return expression->kind == ExprKind::Name || expression->kind == ExprKind::Attribute ||
         expression->kind == ExprKind::Number;
}

// Whether one side of a product is called the part of the window that a micro-batch is.
bool is_share(const Expr* product, std::size_t side) {
  if (product->kind != ExprKind::Binary || product->kids.size() != 2 || !product->kids[side]) return false;
  const Expr* factor = product->kids[side];
  return (factor->kind == ExprKind::Name || factor->kind == ExprKind::Attribute) &&
         names_share(factor->source);
}

}  // namespace

Value Machine::evaluate_unary(const Expr* expression) {
  const Value value = evaluate(expression->kids.empty() ? nullptr : expression->kids[0]);
  if (expression->text == "not") {
    const auto known = truth(value);
    return known ? bool_value(!*known) : Value{};
  }
  if (const auto number = as_number(value))
    return number_value(expression->text == "-" ? -number->number : number->number, number->taint);
  if (value.has_terms() && expression->text == "-")
    return scale_by(value, number_value(-1), false, expression);
  return value;
}

std::optional<bool> Machine::truth(const Value& value) const {
  switch (value.type) {
    case Type::Number:
      return value.number != 0;
    case Type::None:
      return false;
    case Type::String:
      return value.name && !value.name->empty();
    case Type::Sequence:
      return value.heap->uniform || !value.heap->items.empty();
    case Type::Dict:
      return !value.heap->fields.empty();
    case Type::Opaque:
      return std::nullopt;
    default:
      return true;
  }
}

// The number that a value is, or that its name stands for.
std::optional<Value> Machine::as_number(const Value& value) const {
  if (value.is(Type::Object) && value.heap->role == Role::Cell) return as_number(value.held());
  if (value.is(Type::Number)) return value;
  if (!value.opaque() || value.has_terms() || !value.name) return std::nullopt;
  if (scan_.is_window_name(*value.name) || scan_.is_window_name(last_part(*value.name)) ||
      names_accumulation(*value.name))
    return number_value(world_.accumulation, kAccumulation);
  return guess_number(*value.name);
}

// A literal that the file uses as N is N, at the size that is simulated.
double Machine::window_literal(double number) const {
  return scan_.is_window_literal(number) ? world_.accumulation : 0;
}

Value Machine::arithmetic(std::string_view op, double a, double b, std::uint16_t taint) const {
  if (op == "+") return number_value(a + b, taint);
  if (op == "-") return number_value(a - b, taint);
  if (op == "*") return number_value(a * b, taint);
  if (op == "/") return b == 0 ? Value{} : number_value(a / b, taint);
  if (op == "//") return b == 0 ? Value{} : number_value(std::floor(a / b), taint);
  if (op == "%") return b == 0 ? Value{} : number_value(a - b * std::floor(a / b), taint);
  if (op == "**") return number_value(std::pow(a, b), taint);
  if (op == "&" || op == "|") {
    const bool x = a != 0, y = b != 0;
    return bool_value(op == "&" ? x && y : x || y);
  }
  return {};
}

Value Machine::binary(std::string_view op, const Value& left, const Value& right, const Expr* expression) {
  if (left.is(Type::String) && (op == "%" || op == "+")) {  // text that shows values
    Value text = left;
    std::vector<Value> shown = left.heap ? left.heap->items : std::vector<Value>{};
    if (right.is(Type::Sequence) || right.is(Type::String)) {
      if (right.heap) shown.insert(shown.end(), right.heap->items.begin(), right.heap->items.end());
    } else {
      shown.push_back(right);
    }
    text.heap = sequence_value(std::move(shown)).heap;
    return text;
  }
  Value a = left, b = right;
  if (op == "/" || op == "//" || op == "*" || op == "%" || op == "*=") {
    const auto swap_literal = [&](const Expr* written, Value& value) {
      if (written && written->kind == ExprKind::Number && window_literal(written->number) > 0)
        value = number_value(window_literal(written->number), kAccumulation);
    };
    if (expression->kind == ExprKind::Binary && expression->kids.size() == 2)
      swap_literal(expression->kids[1], b);
    // N * loss, 1 / N: a literal on the left is N only in a product.
    if (expression->kind == ExprKind::Binary && op == "*") swap_literal(expression->kids[0], a);
  }
  if (a.is(Type::Sequence) && b.is(Type::Sequence) && op == "+") {
    std::vector<Value> items = a.heap->items;
    items.insert(items.end(), b.heap->items.begin(), b.heap->items.end());
    if (items.size() > 256) items.resize(256);
    return sequence_value(std::move(items));
  }
  if (a.is(Type::Sequence) && op == "*" && a.heap->items.size() == 1) {
    const auto times = as_number(b);
    if (times && times->number >= 1 && times->number <= 64)
      return sequence_value(std::vector<Value>(static_cast<std::size_t>(times->number), a.heap->items[0]));
  }
  a = a.held();
  b = b.held();
  if (a.is(Type::Object) && a.heap->role == Role::Gradient) return a;
  if (b.is(Type::Object) && b.heap->role == Role::Gradient) return b;
  const auto x = as_number(a), y = as_number(b);
  if (op == "%" && y && (y->taint & kAccumulation) && y->number >= 2 && a.is(Type::Number) &&
      (x->taint & kIndex))
    trace_.accumulation = y->number;
  if (x && y) {
    auto taint = static_cast<std::uint16_t>(x->taint | y->taint);
    // N // processes is still a number of micro-batches; N * processes is not.
    if ((op == "/" || op == "//") && (x->taint & kAccumulation) && (y->taint & (kWorld | kLocalWorld)))
      taint = x->taint;
    // A ratio of batch sizes counts the micro-batches of a batch, or is one micro-batch's share of it.
    if (op == "/" && (x->taint & kBatchSize) && is_own_size(expression) &&
        !contains_any(lower(expression->kids[1]->source), {"micro", "chunk", "sub", "per_"}))
      return arithmetic(op, x->number, y->number, kGlobalBatch);  // len(micro) / batch: its share
    if ((op == "/" || op == "//") && (x->taint & kBatchSize) && (y->taint & kBatchSize) &&
        x->number != y->number)
      taint = static_cast<std::uint16_t>((taint & ~(kBatchSize | kWorld | kLocalWorld)) | kAccumulation);
    return arithmetic(op, x->number, y->number, taint);
  }
  const bool additive = op == "+" || op == "-";
  if (additive && (a.has_terms() || b.has_terms())) return add(a, b, op == "+" ? 1 : -1, expression);
  if (op == "/" || op == "//") {
    if (a.has_terms()) return scale_by(a, b, true, expression);
    // Something unknown, or a loss from elsewhere, that is divided by N is a loss.
    if (op == "/" && (a.opaque() || a.is(Type::None)) && y && (y->taint & kAccumulation) &&
        (!a.name || contains_any(lower(last_part(*a.name)), {"loss", "cost", "objective"})))
      return scale_by(a, *y, true, expression);
    if (b.has_terms() && is_count(b)) return b;  // 1 / count: what it scales is divided by the count
    return b.has_terms() ? symbol_value(expression) : Value{};
  }
  if (op == "*" || op == "@") {
    if (op == "@") return symbol_value(expression);
    if (b.has_terms() && is_share(expression, 1)) b = named("fraction");
    if (a.has_terms() && is_share(expression, 0)) a = named("fraction");
    if (a.has_terms() && b.has_terms()) {
      // loss * (own count / window's count) keeps the loss; any other product is a new quantity.
      if (is_count(b) && !is_count(a)) return scale_by(a, b, false, expression);
      if (is_count(a)) return scale_by(b, a, false, expression);
      return product_of(a, b, expression);
    }
    if (a.has_terms()) return scale_by(a, b, false, expression);
    if (b.has_terms()) return scale_by(b, a, false, expression);
  }
  return {};
}

// "every so often": k % period == 0 with a period that is not N holds every time here, because no simulation
// is long enough to wait for it. The counter is kept for what the condition guards.
std::optional<Value> Machine::periodic(const Expr* test) {
  const Expr* modulo = test->kids.empty() ? nullptr : test->kids[0];
  if (test->text != "==" || !modulo || modulo->kind != ExprKind::Binary || modulo->text != "%")
    return std::nullopt;
  const Value period = evaluate(modulo->kids[1]);
  const bool literal =
      modulo->kids[1]->kind == ExprKind::Number && period.number >= 3 && window_literal(period.number) == 0;
  const bool large =
      period.is(Type::Number) && !(period.taint & (kAccumulation | kLength)) && period.number >= 5;
  const bool open = !as_number(period) && !period.has_terms();
  if (open && names_epoch_period(modulo->kids[1]->source)) {  // once, with the last batch
    const auto at = as_number(evaluate(modulo->kids[0]));
    return at ? std::optional<Value>(bool_value(std::fmod(at->number, world_.epoch_length()) == 0))
              : std::nullopt;
  }
  if (!literal && !open && !large) return std::nullopt;
  const auto counter = as_number(evaluate(modulo->kids[0]));
  period_counter_ = counter ? counter->number : -1;
  return bool_value(true);
}

// A counter against an open number of steps: no simulation is long enough to reach it, unless it is the
// length of an epoch. Nothing is said of an open number that may be met with every micro-batch.
std::optional<bool> Machine::meets_limit(const Value& counter, const Value& limit, const Expr* expression,
                                         std::size_t side) const {
  if (!limit.opaque() || limit.has_terms()) return std::nullopt;
  const Expr* written = expression->kids[side];
  if (!is_plain_arithmetic(written) && !limit.name) return std::nullopt;
  const bool last = written->kind == ExprKind::Binary && written->text == "-" &&
                    written->kids[1]->kind == ExprKind::Number && written->kids[1]->number == 1;
  if (last) written = written->kids[0];  // step == num_steps - 1
  const std::string_view name = limit.name && !last ? std::string_view(*limit.name) : written->source;
  if (contains_any(lower(name), {"batch_size", "bsz"})) return std::nullopt;
  const auto op = expression->text;
  const bool met = names_epoch_length(name) && counter.number == world_.epoch_length() - (last ? 1 : 0);
  if (op == "==" || op == "!=") return (op == "==") == met;
  if (!names_run_length(name)) return std::nullopt;
  const bool asks_for_more = side == 1 ? op == ">=" || op == ">" : op == "<=" || op == "<";
  return asks_for_more == met;
}

Value Machine::evaluate_compare(const Expr* expression) {
  if (const auto often = periodic(expression)) return *often;
  if (const auto full = closes_on_tokens(expression)) return bool_value(*full);
  const Value left = evaluate(expression->kids[0]);
  const Value right = evaluate(expression->kids[1]);
  const auto op = expression->text;
  if (op == "is" || op == "is not") {
    // The Trainer gives a count when it trains.
    const bool given = (left.opaque() && (left.taint & kWindowCount) && right.is(Type::None)) ||
                       (right.opaque() && (right.taint & kWindowCount) && left.is(Type::None));
    if (given) return bool_value(op == "is not");
    if (left.opaque() || right.opaque()) return {};
    bool same = left.type == right.type && left.heap == right.heap;
    if (left.is(Type::Number) && right.is(Type::Number)) same = left.number == right.number;
    return bool_value(same == (op == "is"));
  }
  if (op == "in" || op == "not in") {
    if (right.is(Type::Sequence) && left.is(Type::Number)) {
      bool found = false, open = false;
      for (const Value& item : right.heap->items) {
        found = found || (item.is(Type::Number) && item.number == left.number);
        open = open || item.opaque();
      }
      if (found || !open) return bool_value(found == (op == "in"));
    }
    return {};
  }
  if (left.is(Type::String) && right.is(Type::String)) {
    if (op == "==") return bool_value(*left.name == *right.name);
    if (op == "!=") return bool_value(*left.name != *right.name);
  }
  if (left.is(Type::None) != right.is(Type::None) && !left.opaque() && !right.opaque() &&
      (op == "==" || op == "!="))
    return bool_value(op == "!=");
  Value a = left, b = right;
  // `counter == 8` where 8 is N.
  const auto swap_literal = [&](const Expr* written, Value& value, const Value& other) {
    if (written->kind == ExprKind::Number && window_literal(written->number) > 0 && other.is(Type::Number) &&
        (other.taint & kIndex))
      value = number_value(window_literal(written->number), kAccumulation);
  };
  swap_literal(expression->kids[1], b, a);
  const auto x = as_number(a), y = as_number(b);
  // A counter that meets an open number: it does so once in a long run.
  const auto counts = [&](const std::optional<Value>& number, std::size_t side) {
    const Expr* written = expression->kids[side];
    return number && ((number->taint & kIndex) || written->kind == ExprKind::Binary ||
                      scan_.is_counter(written->source));
  };
  const std::size_t limit = counts(x, 0) && !y ? 1 : counts(y, 1) && !x ? 0 : 2;
  if (limit < 2)
    if (const auto met = meets_limit(*(limit == 1 ? x : y), limit == 1 ? b : a, expression, limit))
      return bool_value(*met);
  if (!x || !y) return {};
  // An invented number decides nothing on its own: only counters and what is computed from them do.
  const bool invented = (a.opaque() || b.opaque()) &&
                        !((x->taint | y->taint) & (kAccumulation | kLength | kWorld | kLocalWorld));
  if (invented) return {};
  // A counter that is compared with N: N decides the windows.
  if ((x->taint & kIndex) && (y->taint & kAccumulation) && !(y->taint & kLength) && y->number >= 2 &&
      trace_.accumulation == 0 && loops_ > 0)
    trace_.accumulation = y->number;
  if (op == "==") return bool_value(x->number == y->number);
  if (op == "!=") return bool_value(x->number != y->number);
  if (op == "<") return bool_value(x->number < y->number);
  if (op == "<=") return bool_value(x->number <= y->number);
  if (op == ">") return bool_value(x->number > y->number);
  if (op == ">=") return bool_value(x->number >= y->number);
  return {};
}

// A flag that tells the end of an epoch, where something else is asked with it: it seldom holds.
std::optional<bool> Machine::end_of_epoch(const Expr* expression) {
  if (!expression) return std::nullopt;
  const bool negated =
      expression->kind == ExprKind::Unary && expression->text == "not" && !expression->kids.empty();
  if (negated) expression = expression->kids[0];
  if (!expression) return std::nullopt;
  if (expression->kind != ExprKind::Name && expression->kind != ExprKind::Attribute) return std::nullopt;
  if (!contains_any(lower(last_part(expression->source)),
                    {"new_epoch", "end_of_epoch", "epoch_end", "epoch_done", "last_batch", "last_iter",
                     "end_of_dataloader", "final_batch"}))
    return std::nullopt;
  const Value value = evaluate(expression);
  if (truth(value)) return std::nullopt;
  trace_.flushes = trace_.flushes || last_batch_;
  trace_.open_flush = true;
  return last_batch_ != negated;
}

Value Machine::evaluate_logic(const Expr* expression) {
  Value left = evaluate(expression->kids[0]);
  const bool is_and = expression->text == "and";
  if (const auto last = end_of_epoch(expression->kids[0])) left = bool_value(*last);
  const auto known = truth(left);
  if (known && *known != is_and) return left;
  Value right = evaluate(expression->kids[1]);
  if (const auto last = end_of_epoch(expression->kids[1])) right = bool_value(*last);
  if (known) return right;
  const auto other = truth(right);
  if (other && *other != is_and && right.is(Type::Number)) return right;
  // x or default: the open side may be anything; a known right side is what the file says.
  if (!is_and && !left.name && !right.opaque()) return right;
  return left.has_terms() || left.name ? left : Value{};
}

}  // namespace batchwright::check
