// Iteration: how often a loop runs when the program does not say, and what it gives each time.
#include <algorithm>
#include <cmath>

#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;
constexpr double kEpochs = 2;      // enough to see what an epoch leaves to the next
constexpr double kOuterSteps = 3;  // windows, when each is a loop of its own

// One parameter stands for all of them.
bool names_parameters(std::string_view text) {
  const std::string word = lower(text);
  return contains_any(word, {"param", "variables", "weights", "tvars", "layers", "modules", "grads",
                             "gradients", "optimizers", "groups"}) ||
         word == "vars";
}

bool names_data(std::string_view text) {
  const std::string word = lower(text);
  return contains_any(word,
                      {"loader", "dataset", "iter", "_dl", "dl_", "data", "batches", "queue", "stream"}) ||
         word == "dl";
}

}  // namespace

// How many items an iterable has that the program leaves open.
double Machine::open_length(const Value& iterable, std::string_view text) const {
  if (iterable.is(Type::Object) && iterable.heap->role == Role::Loader) return world_.epoch_length();
  const std::string_view name =
      iterable.opaque() && iterable.name && !iterable.has_terms() ? std::string_view(*iterable.name) : text;
  if (names_parameters(last_part(name))) return 1;
  if (names_micro_batches(last_part(name))) return world_.accumulation;
  if (names_data(name)) return world_.epoch_length();
  return world_.accumulation;
}

// Whether a number was written with an epoch that the program leaves open.
bool Machine::holds_open_epoch(const Expr* written) {
  if (!written) return false;
  if (written->kind == ExprKind::Name || written->kind == ExprKind::Attribute)
    return contains_any(lower(last_part(written->source)), {"epoch"}) && evaluate(written).opaque();
  return written->kind == ExprKind::Binary &&
         std::any_of(written->kids.begin(), written->kids.end(),
                     [&](const Expr* part) { return holds_open_epoch(part); });
}

Value Machine::iterator_of(const Value& value) {
  if (value.is(Type::Iterator)) return value;
  Value iterator;
  iterator.type = Type::Iterator;
  iterator.heap = std::make_shared<Heap>();
  Heap& heap = *iterator.heap;
  if (value.is(Type::Sequence)) {
    heap.kind = IteratorKind::Items;
    heap.items = value.heap->items;
    heap.count = static_cast<double>(heap.items.size());
    heap.uniform = value.heap->uniform;
  } else if (value.is(Type::Dict)) {
    heap.kind = IteratorKind::Items;
    for (const auto& [name, item] : value.heap->fields) {
      Value key = named(name);
      key.type = Type::String;
      heap.items.push_back(std::move(key));
    }
    heap.count = static_cast<double>(heap.items.size());
  } else if (value.is(Type::Object) && value.heap->role == Role::Parameters) {
    heap.count = 1;
    if (const auto module = value.heap->fields.find("name"); module != value.heap->fields.end())
      heap.items.push_back(named(*module->second.name + std::string(kParameter)));
  } else if (value.is(Type::Object) && value.heap->role == Role::Loader) {
    heap.count = world_.epoch_length();
    heap.taint = kLength;
  } else if (value.is(Type::Object) && value.heap->definition) {
    Value made;
    if (const Value* method = method_of(value, "__iter__", made)) {
      Arguments none;
      return iterator_of(call_function(*method, none));
    }
    heap.count = -1;
  } else {
    heap.count = -1;  // its loop decides
    Value item;
    if (value.has_terms()) item = value;
    heap.uniform = value.opaque() && value.name && names_parameters(last_part(*value.name));
    if (value.opaque() && value.name && contains_any(lower(*value.name), {"optim", "sched"}))
      item = named(*value.name + "[]");
    heap.items.push_back(item);
  }
  return iterator;
}

std::optional<Value> Machine::next_item(Heap& heap) {
  if (heap.count >= 0 && heap.position >= heap.count && heap.kind != IteratorKind::Enumerate &&
      heap.kind != IteratorKind::Slice && heap.kind != IteratorKind::Zip)
    return std::nullopt;
  const double at = heap.position++;
  switch (heap.kind) {
    case IteratorKind::Range:
      return number_value(heap.start + at * heap.step, static_cast<std::uint16_t>(kIndex));
    case IteratorKind::Items:
      return heap.items[static_cast<std::size_t>(at)];
    case IteratorKind::Data:
    case IteratorKind::Endless:
      if (heap.count > 0 && (heap.taint & kLength)) last_batch_ = heap.position >= heap.count;
      return heap.items.empty() ? Value{} : heap.items[0];
    case IteratorKind::Slice: {
      if (heap.count >= 0 && at >= heap.count) return std::nullopt;
      return next_item(*heap.items[0].heap);
    }
    case IteratorKind::Enumerate: {
      auto inner = next_item(*heap.items[0].heap);
      if (!inner) return std::nullopt;
      return sequence_value({number_value(heap.start + at, kIndex), *inner});
    }
    case IteratorKind::Zip: {
      std::vector<Value> row;
      for (Value& inner : heap.items) {
        auto item = next_item(*inner.heap);
        if (!item) return std::nullopt;
        row.push_back(std::move(*item));
      }
      return sequence_value(std::move(row));
    }
  }
  return std::nullopt;
}

namespace {

// The innermost iterators with an open length get one; what is known stays.
void limit_open(Heap& heap, double length, std::uint16_t taint, int depth = 0) {
  if (depth > 8) return;
  if (heap.kind == IteratorKind::Enumerate || heap.kind == IteratorKind::Slice ||
      heap.kind == IteratorKind::Zip) {
    for (Value& inner : heap.items)
      if (inner.heap) limit_open(*inner.heap, length, taint, depth + 1);
  } else if (heap.count < 0 && heap.kind != IteratorKind::Endless) {
    heap.count = length;
    heap.taint |= taint;
  }
}

const Heap& innermost(const Heap& heap, int depth = 0) {
  if ((heap.kind == IteratorKind::Enumerate || heap.kind == IteratorKind::Slice ||
       heap.kind == IteratorKind::Zip) &&
      !heap.items.empty() && heap.items[0].heap && depth < 8 &&
      !(heap.kind == IteratorKind::Slice && heap.count >= 0))
    return innermost(*heap.items[0].heap, depth + 1);
  return heap;
}

}  // namespace

namespace {

// Whether a loop runs over parts of one loss: `for name, term_loss in losses`.
bool over_losses(const Stmt* loop) {
  return loop->kind == StmtKind::For &&
         std::any_of(loop->targets.begin(), loop->targets.end(),
                     [](const Expr* target) { return lower(target->source).ends_with("loss"); });
}

}  // namespace

double Machine::iteration_limit(const Stmt* loop, const Value& iterator, bool& truncated) {
  const Nest& nest = scan_.nest(loop);
  const Heap& heap = innermost(*iterator.heap);
  const double known = heap.count >= 0 ? heap.count - heap.position : -1;
  const bool certain = known >= 0 && (heap.kind != IteratorKind::Range ||
                                      (heap.taint & (kLength | kAccumulation)) || known <= 16);

  if (!nest.backward) {
    if (known >= 0) return std::min(known, 40.0);
    const std::string_view over = loop->value ? loop->value->source : std::string_view{};
    // A loop that steps or zeroes without a backward of its own runs over optimizers.
    const bool all_alike = names_parameters(over) || contains_any(over, {"module"}) ||
                           (scan_.effects(loop->body) & (kDoesStep | kDoesZero));
    return all_alike ? 1 : world_.accumulation;
  }
  if (!nest.step && known < 0 && over_losses(loop)) return 1;  // the parts of one micro-batch's loss
  // A window each of whose micro-batches goes backward in a loop of its own.
  if (nest.inner_backward && !nest.step && known > 0 && known <= 16) {
    trace_.window_by_loop = true;
    return known;
  }
  if (nest.inner_backward) {
    const double wanted = nest.inner_step ? kEpochs : kOuterSteps;
    if (known >= 0 && known <= wanted) return known;
    if (nest.inner_step && known > wanted && !(heap.taint & kLength)) trace_.epoch_scale = known / wanted;
    truncated = !(nest.inner_step);
    // A data loop whose windows are inner loops: three of them are enough.
    return wanted;
  }
  if (!nest.step) {  // a loop over the micro-batches of one window
    if (known > 0 && known <= 64) {
      trace_.window_by_loop = true;
      return known;
    }
    if (known > 64) truncated = true;
    trace_.window_by_loop = true;
    return world_.accumulation;
  }
  if (certain) return std::min(known, 80.0);
  truncated = true;
  return known >= 0 ? std::min(known, world_.epoch_length()) : world_.epoch_length();
}

Flow Machine::run_body(const Stmt* statement) {
  const int outer = stamp_;
  // Only loops over micro-batches tell micro-batches apart: one over a model's heads does not.
  const bool micro = ((scan_.effects(statement->body) & kDoesBackward) && !over_losses(statement)) ||
                     (statement->value && names_micro_batches(statement->value->source)) ||
                     (!statement->targets.empty() && names_micro_batches(statement->targets[0]->source));
  if (micro) stamp_ = ++stamps_;
  ++loops_;
  const Flow flow = execute(statement->body);
  --loops_;
  stamp_ = outer;
  return flow;
}

void Machine::loop_ended(const Stmt* loop, bool truncated) {
  const auto effects = scan_.effects(loop->body);
  if (!(effects & kDoesBackward)) return;
  ++trace_.loop_ends;
  Event event;
  event.kind = EventKind::LoopEnd;
  event.line = loop->line;
  event.truncated = truncated;
  trace_.events.push_back(event);
}

Flow Machine::execute_for(const Stmt* statement) {
  const Value iterable = evaluate(statement->value);
  Value iterator = iterator_of(iterable);
  if (!iterator.heap || statement->targets.empty()) return Flow::Normal;
  bool truncated = false;
  const bool open = innermost(*iterator.heap).count < 0;
  const bool endless = open && innermost(*iterator.heap).kind == IteratorKind::Endless;
  const double limit = iteration_limit(statement, iterator, truncated);
  const auto effects = scan_.effects(statement->body);
  if (open) {
    const bool data = (effects & kDoesBackward) && (effects & kDoesStep);
    limit_open(*iterator.heap, limit, data ? kLength : kAccumulation);
    truncated = truncated && endless;
  }
  if (!(effects & kDoesStep) && (effects & kDoesBackward) && limit > 1) {
    trace_.loop_window = limit;
    if (contains_any(lower(statement->value->source), {"dynamic", "pack", "bin", "rearrange", "token_budget",
                                                       "by_tokens", "max_tokens", "budget"}))
      trace_.dynamic_windows = true;
    if (names_micro_batches(statement->value->source) || names_micro_batches(statement->targets[0]->source))
      trace_.micro_loop_named = true;
  }
  if ((effects & kDoesBackward) && names_micro_batches(statement->value->source))
    trace_.micro_loop_named = true;
  if (!(effects & kTraining) && names_ema(statement->value->source))
    Library{*this}.event(EventKind::Ema, statement->line);
  double done = 0;
  Flow flow = Flow::Normal;
  while (done < limit && spend()) {
    auto item = next_item(*iterator.heap);
    if (!item) {
      truncated = false;
      break;
    }
    ++done;
    assign(statement->targets[0], std::move(*item), statement->value);
    flow = run_body(statement);
    if (flow == Flow::Break || flow == Flow::Return || flow == Flow::Raise) break;
  }
  loop_ended(statement, truncated);
  if (flow == Flow::Return || flow == Flow::Raise) return flow;
  if (flow != Flow::Break) return execute(statement->orelse);
  return Flow::Normal;
}

Flow Machine::execute_while(const Stmt* statement) {
  Value endless;
  endless.type = Type::Iterator;
  endless.heap = std::make_shared<Heap>();
  endless.heap->kind = IteratorKind::Endless;
  endless.heap->count = -1;
  bool truncated = false;
  double limit = iteration_limit(statement, endless, truncated);
  truncated = true;
  const Nest& nest = scan_.nest(statement);
  if (nest.backward && !nest.step && statement->value && statement->value->kind == ExprKind::Compare &&
      statement->value->kids[0] && scan_.restarts(statement->value->kids[0]->source))
    limit = 12;  // its condition ends it
  double done = 0;
  Flow flow = Flow::Normal;
  while (done < limit && spend()) {
    const auto go = truth(evaluate(statement->value));
    if (go && !*go) {
      truncated = false;
      break;
    }
    ++done;
    flow = run_body(statement);
    if (flow == Flow::Break || flow == Flow::Return || flow == Flow::Raise) break;
  }
  loop_ended(statement, truncated && flow != Flow::Break);
  return flow == Flow::Return || flow == Flow::Raise ? flow : Flow::Normal;
}

}  // namespace batchwright::check
