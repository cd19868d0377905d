// Lengths, sums and means of what a program holds.
#include <set>

#include "check/library.h"
#include "check/roles.h"

namespace batchwright::check {

using Type = Value::Type;

Value Library::length(const Value& value, const Expr* call) {
  if (value.is(Type::Sequence)) {
    const auto size = value.heap->uniform ? 1.0 : static_cast<double>(value.heap->items.size());
    return number_value(size, static_cast<std::uint16_t>(size >= 2 ? kAccumulation : 0));
  }
  if (value.is(Type::Iterator) && value.heap->count >= 0)
    return number_value(value.heap->count,
                        static_cast<std::uint16_t>(value.heap->taint & kLength ? kLength : kAccumulation));
  // Before Accelerator.prepare() a loader still holds the batches of all processes.
  const double share =
      m.accelerate_.used && !m.loader_prepared_ && m.scan_.mentions(".prepare(") ? m.trace_.world : 1;
  if (value.is(Type::Object) && value.heap->role == Role::Loader)
    return number_value(m.world_.epoch_length() * share, kLength);
  const std::string_view text = call && call->kids.size() > 1 ? call->kids[1]->source : std::string_view{};
  const std::string word = lower(value.opaque() && value.name ? last_part(*value.name) : last_part(text));
  if (m.scan_.is_window(text)) return number_value(m.world_.accumulation, kAccumulation);
  if (contains_any(word, {"dataset", "_ds", "train_data", "examples", "samples", "buffer", "corpus"}) &&
      !contains_any(word, {"loader"}))
    return number_value(m.world_.epoch_length() * 8 * share, kLength);
  if (contains_any(word, {"param", "vars", "variables", "grads", "layers", "modules"}))
    return number_value(1);
  const double open = m.open_length(value, text);
  // len(chunks) counts micro-batches, len(chunk) the examples of one.
  if (contains_any(word, {"micro", "chunk", "split", "accum", "shard"}) &&
      (word.ends_with("s") || contains_any(word, {"accum", "list", "split"})))
    return number_value(open, kAccumulation);
  if (open == m.world_.epoch_length()) return number_value(open * share, kLength);
  if (m.scan_.is_looped(text)) return number_value(open, kAccumulation);
  return number_value(value.number > 0 ? value.number : 8, kBatchSize);
}

Value Library::sum(const Value& value, const Expr* origin) {
  if (!value.is(Type::Sequence)) {
    if (value.is(Type::Number)) return value;
    return value.has_terms() ? value : m.symbol_value(origin);
  }
  Value total = number_value(0);
  for (const Value& item : value.heap->items) total = m.binary("+", total, item, origin);
  return total;
}

Value Library::mean(const Value& value, const Expr* origin) {
  if (!value.is(Type::Sequence))
    return value.has_terms() || value.is(Type::Number) ? value : m.symbol_value(origin);
  const auto size = static_cast<double>(value.heap->items.size());
  if (size == 0) return number_value(0);
  const Value total = sum(value, origin);
  if (const auto number = m.as_number(total)) return number_value(number->number / size, number->taint);
  std::set<int> stamps;
  if (total.has_terms())
    for (const Term& term : *total.terms)
      stamps.insert(m.trace_.symbols[static_cast<std::size_t>(term.symbol)].stamp);
  if (stamps.size() < 2) return total;
  // A mean over losses of one iteration is a mean of parts; over micro-batches it is the window's division.
  return m.scale_by(total, number_value(size, kAccumulation), true, origin);
}

}  // namespace batchwright::check
