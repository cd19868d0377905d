// Comprehensions: loops inside an expression.
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

// {key: value for ...}: its element reads as a pair.
bool is_dictionary(const Expr* comprehension) {
  const Expr* element = comprehension->kids[0];
  return comprehension->source.starts_with("{") && element && element->kind == ExprKind::Tuple &&
         element->kids.size() == 2 && !element->source.starts_with('(');
}

Value dictionary_of(const std::vector<Value>& pairs) {
  Value made;
  made.type = Type::Dict;
  made.heap = std::make_shared<Heap>();
  for (const Value& pair : pairs) {
    if (!pair.is(Type::Sequence) || pair.heap->items.size() != 2) continue;
    const Value& key = pair.heap->items[0];
    made.heap->fields[key.is(Type::String) ? *key.name : std::string("?")] = pair.heap->items[1];
  }
  return made;
}

}  // namespace

Value Machine::evaluate_comprehension(const Expr* expression) {
  const auto outer = scope_;
  scope_ = new_scope(outer);
  std::vector<Value> items;
  const int stamp = stamp_;
  comprehend(expression, 1, items);
  stamp_ = stamp;
  scope_ = outer;
  if (is_dictionary(expression)) return dictionary_of(items);
  Value made = sequence_value(std::move(items));
  const Expr* iterable = expression->kids[2];
  made.heap->uniform = made.heap->items.size() == 1 && !(iterable && iterable->kind == ExprKind::List);
  return made;
}

void Machine::comprehend(const Expr* expression, std::size_t clause, std::vector<Value>& out) {
  if (clause >= expression->kids.size()) {
    out.push_back(evaluate(expression->kids[0]));
    return;
  }
  const Value iterable = evaluate(expression->kids[clause + 1]);
  Value iterator = iterator_of(iterable);
  if (!iterator.heap) return;
  // Losses of micro-batches are kept apart; those of a model's heads are parts of one.
  const bool micro = names_micro_batches(expression->kids[clause + 1]->source) ||
                     names_micro_batches(expression->kids[clause]->source) ||
                     (iterator.heap->kind == IteratorKind::Range && (iterator.heap->taint & kAccumulation));
  double left = 64;
  if (iterator.heap->count < 0) left = open_length(iterable, expression->kids[clause + 1]->source);
  while (left-- > 0 && out.size() < 64 && spend()) {
    auto item = next_item(*iterator.heap);
    if (!item) break;
    if (micro) stamp_ = ++stamps_;
    assign(expression->kids[clause], *item, expression->kids[clause]);
    if (const Expr* condition = expression->kids[clause + 2]) {
      const auto keep = truth(evaluate(condition));
      if (keep && !*keep) continue;
    }
    comprehend(expression, clause + 3, out);
  }
}

}  // namespace batchwright::check
