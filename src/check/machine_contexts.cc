// `with` and `try`: contexts that hold back the exchange of gradients, context managers that the file
// defines, and the way back from a StopIteration.
#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

}  // namespace

Flow Machine::execute_with(const Stmt* statement) {
  const auto before = contexts_.size();
  const Flow flow = execute_with_from(statement, 0);
  contexts_.resize(std::min(before, contexts_.size()));
  return flow;
}

Flow Machine::execute_with_from(const Stmt* statement, std::size_t item) {
  if (item == statement->items.size()) return execute(statement->body);
  const auto& [context, target] = statement->items[item];
  const bool exchanges = context && (scan_.effects(context) & kEntersContext);
  if (exchanges && context->kind == ExprKind::Binary && context->text == "and" &&
      (scan_.effects(statement->body) & kDoesBackward)) {
    // `with a() and b()` enters b() only.
    trace_.context_line = statement->line;
    trace_.unentered_context = true;
  }
  const Value value = evaluate(context);
  const auto rest = [this, statement, item] { return execute_with_from(statement, item + 1); };
  if (value.is(Type::Object) && value.heap->role == Role::Manager) return run_manager(value, target, rest);
  Value made;
  if (value.is(Type::Object) && value.heap->definition)
    if (const Value* method = method_of(value, "__enter__", made)) {
      Arguments none;
      const Value entered = call_function(*method, none);
      if (target) assign(target, entered, context);
      const Flow flow = rest();
      if (const Value* leave = method_of(value, "__exit__", made)) call_function(*leave, none);
      return flow;
    }
  if (value.is(Type::Object)) {
    Library{*this}.enter(value, statement->line);
  } else if (value.is(Type::Sequence) && exchanges) {
    for (const Value& each : value.heap->items)
      if (each.is(Type::Object)) Library{*this}.enter(each, statement->line);
  }
  // A profiler's step() is none of an optimizer.
  const bool profiles = contains_any(context->source.substr(0, 60), {"profile(", "profiler("});
  if (target) assign(target, profiles ? object_value(Role::OtherContext) : value, context);
  return rest();
}

// The body of a @contextmanager function; `inside` runs where it yields.
Flow Machine::run_manager(const Value& manager, const Expr* target, const std::function<Flow()>& inside) {
  Suspension suspension{manager.heap->definition, {}, scope_};
  suspension.inside = [&] {
    if (target) assign(target, returned_, target);
    return inside();
  };
  suspensions_.push_back(&suspension);
  stack_.push_back(suspension.manager);
  scope_ = manager.heap->scope;
  ++depth_;
  execute(suspension.manager->body);
  --depth_;
  scope_ = suspension.scope;
  stack_.pop_back();
  suspensions_.pop_back();
  // A yield that the simulation did not come to: what it guards runs all the same.
  return suspension.ran ? suspension.flow : suspension.inside();
}

Value Machine::yield(Value value) {
  Suspension* suspension = suspensions_.empty() ? nullptr : suspensions_.back();
  if (!suspension || suspension->ran || stack_.empty() || stack_.back() != suspension->manager) {
    if (yields_.size() < 64) yields_.push_back(std::move(value));
    return {};
  }
  suspension->ran = true;
  const auto scope = scope_;
  suspensions_.pop_back();
  stack_.pop_back();
  scope_ = suspension->scope;
  returned_ = std::move(value);
  suspension->flow = suspension->inside();
  scope_ = scope;
  stack_.push_back(suspension->manager);
  suspensions_.push_back(suspension);
  return {};
}

Flow Machine::execute_try(const Stmt* statement) {
  const Place place{scope_, contexts_.size(), stack_.size(), suspensions_.size(), depth_, stamp_, loops_};
  ++try_depth_;
  Flow flow = Flow::Normal;
  try {
    flow = execute(statement->body);
  } catch (const StopIteration&) {
    flow = Flow::Raise;
    scope_ = place.scope;
    contexts_.resize(std::min(place.contexts, contexts_.size()));
    stack_.resize(std::min(place.calls, stack_.size()));
    suspensions_.resize(std::min(place.suspensions, suspensions_.size()));
    depth_ = place.depth;
    stamp_ = place.stamp;
    loops_ = place.loops;
  }
  --try_depth_;
  if (flow == Flow::Raise) flow = execute(statement->handlers);
  if (flow == Flow::Normal) flow = execute(statement->orelse);
  return flow;
}

}  // namespace batchwright::check
