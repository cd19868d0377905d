// What a training call does to the gradients, and the record of it.
#include <algorithm>
#include <functional>

#include "check/library.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {

using Type = Value::Type;

void Library::event(EventKind kind, int line, Terms terms) {
  if (m.trace_.events.size() > 2'500) {
    m.budget_ = 0;  // more of the same
    m.trace_.events.resize(2'500);
  }
  Event made;
  made.kind = kind;
  made.line = line;
  made.stamp = m.stamp_;
  made.target = -1;
  made.terms = std::move(terms);
  m.trace_.events.push_back(std::move(made));
}

int Library::new_optimizer(const std::string& name) {
  const int id = static_cast<int>(m.buffers_.size());
  Machine::Buffer buffer;
  // What was accumulated before anyone named this optimizer is in its parameters' gradients too.
  if (!m.buffers_.empty()) buffer = m.buffers_.front();
  if (m.buffers_.size() < 64) {
    m.buffers_.push_back(std::move(buffer));
    m.owned_.emplace_back();
  }
  m.trace_.optimizers.push_back(name);
  return std::min(id, 63);
}

void Library::note_owned(int optimizer, const Arguments& arguments) {
  auto& owned = m.owned_[static_cast<std::size_t>(optimizer)];
  const auto take = [&](std::string_view name) {
    if (!name.empty()) owned.push_back(m.intern(std::string(name)));
  };
  const std::function<void(const Value&, int)> follow = [&](const Value& value, int depth) {
    if (value.is(Type::Object) && value.heap->role == Role::Parameters)
      for (const auto& [key, name] : value.heap->fields) take(*name.name);
    if (depth < 3 && (value.is(Type::Sequence) || value.is(Type::Dict))) {
      for (const Value& item : value.heap->items) follow(item, depth + 1);
      for (const auto& [key, field] : value.heap->fields) follow(field, depth + 1);
    }
  };
  for (const Value& value : arguments.positional) follow(value, 0);
  for (const auto& [name, value] : arguments.keywords) follow(value, 0);
  if (!owned.empty() || !arguments.call || arguments.call->kids.size() < 2) {
    if (!owned.empty()) m.trace_.owned.insert(optimizer);
    return;
  }
  // chain(a.parameters(), b.parameters()), [p for p in a.parameters() if p.requires_grad], ...
  each_expression(arguments.call->kids[1], [&](const Expr* part) {
    if (part->kind != ExprKind::Call || part->kids.empty() || !part->kids[0] || part->kids[0]->kids.empty())
      return;
    if (is_one_of(part->kids[0]->text, {"parameters", "named_parameters"}))
      take(m.identity_of(m.evaluate(part->kids[0]->kids[0])));
  });
  if (!owned.empty()) m.trace_.owned.insert(optimizer);
}

int Library::optimizer_id(const Value& object) {
  if (object.is(Type::Object) && object.heap->role == Role::Optimizer) return object.heap->id;
  const std::string name =
      object.opaque() && object.name ? std::string(last_part(*object.name)) : "optimizer";
  const auto known = m.optimizer_ids_.find(name);
  if (known != m.optimizer_ids_.end()) return known->second;
  return m.optimizer_ids_[name] = new_optimizer(name);
}

void Library::backward(const Value& loss, int line) {
  Terms terms = loss.is(Type::Number) ? Terms{} : m.terms_of(loss, nullptr);
  // The other side of `if loss is not None` leaves the loss at 0: nothing is trained there.
  const bool none_there = loss.is(Type::Number) && loss.number == 0 && !m.world_.choices.empty();
  if (terms.empty() && loss.is(Type::Number) && !none_there) terms = *m.symbol_value(nullptr).terms;
  overwrite_gradients();
  event(EventKind::Backward, line, terms);
  Event& made = m.trace_.events.back();
  made.no_sync = m.in_context(Role::NoSync) || !m.sync_required_ ||
                 (m.in_context(Role::Accumulate) && !m.accelerate_.sync);
  const bool inside = m.in_context(Role::Accumulate) || m.in_context(Role::NoSync);
  // Beside accumulate() only its own accelerator's backward counts: a reference model may train without it.
  if (inside || !m.trace_.used_accumulate || m.accelerator_backward_)
    ++(inside ? m.trace_.backward_in_context : m.trace_.backward_outside_context);
  if (!inside) m.trace_.outside_line = line;
  if (m.buffers_.empty()) new_optimizer("(first)");
  for (std::size_t i = 0; i < m.buffers_.size(); ++i) {
    auto& buffer = m.buffers_[i];
    made.clipped = made.clipped || (buffer.clipped && !buffer.terms.empty());
    if (buffer.terms.size() >= 200) continue;
    for (const Term& term : terms)
      if (m.reaches(m.trace_.symbols[static_cast<std::size_t>(term.symbol)], i)) buffer.terms.push_back(term);
  }
  if (m.in_hook_) return;
  m.in_hook_ = true;
  const std::vector<Value> hooks = m.hooks_;  // a hook may register another
  for (const Value& hook : hooks) {
    Arguments arguments;
    arguments.positional.push_back(m.named("parameter"));
    m.call_function(hook, arguments);
  }
  m.in_hook_ = false;
}

void Library::step(int optimizer, int line, bool through_scaler) {
  if (m.accelerate_.used && !m.accelerate_.sync) return;
  auto& buffer = m.buffers_[static_cast<std::size_t>(optimizer)];
  event(EventKind::Step, line, buffer.terms);
  Event& made = m.trace_.events.back();
  made.target = optimizer;
  made.in_hook = m.in_hook_;
  made.through_scaler = through_scaler;
  for (auto& each : m.buffers_) each.clipped = false;
  buffer.unscaled = 0;
}

void Library::zero(int optimizer, int line) {
  for (std::size_t i = 0; i < m.buffers_.size(); ++i) {
    if (optimizer >= 0 && static_cast<std::size_t>(optimizer) != i) continue;
    event(EventKind::Zero, line, std::move(m.buffers_[i].terms));
    m.trace_.events.back().target = static_cast<int>(i);
    m.buffers_[i] = {};
  }
  // Gradients seen before any optimizer was named live in the first buffer only until one is.
  if (optimizer > 0 && !m.trace_.optimizers.empty() && m.trace_.optimizers[0] == "(first)")
    m.buffers_[0] = {};
}

void Library::clip(int line, bool unscales) {
  event(EventKind::Clip, line);
  Event& made = m.trace_.events.back();
  for (auto& buffer : m.buffers_) {
    for (Term& term : buffer.terms) {
      if (unscales) term.scaled = false;
      made.scaled = made.scaled || term.scaled;
    }
    buffer.clipped = true;
  }
}

Terms Library::note_gradient(const Value& loss, const Expr* origin) {
  Terms terms = m.terms_of(loss, origin);
  event(EventKind::Backward, m.line_, terms);
  return terms;
}

void Library::apply(const Terms& gradient, int optimizer, int line) {
  if (optimizer < 0) optimizer = optimizer_id(m.named("optimizer"));
  event(EventKind::Step, line, gradient);
  m.trace_.events.back().target = optimizer;
  m.trace_.events.back().explicit_gradient = true;
}

// optax.MultiSteps: the mean of k gradients at every k-th call, nothing between them. Schedules inside it
// count its own steps.
void Library::collect(Terms gradient, int optimizer) {
  auto& buffer = m.buffers_[static_cast<std::size_t>(optimizer)];
  for (Term& term : gradient) {
    term.window /= m.multi_steps_;
    buffer.terms.push_back(term);
  }
  if (++m.multi_updates_ % static_cast<int>(m.multi_steps_) != 0) return;
  step(optimizer, m.line_, false);
  m.buffers_[static_cast<std::size_t>(optimizer)].terms.clear();
  for (const int schedule : m.inner_schedules_) {
    event(EventKind::SchedulerStep, m.line_);
    m.trace_.events.back().target = schedule;
    m.trace_.events.back().counter = 1;
  }
}

void Library::schedule_step(const Value& scheduler, int line, bool at) {
  int id = 0;
  if (scheduler.is(Type::Object)) {
    id = scheduler.heap->id;
  } else {
    const std::string name = scheduler.name ? std::string(last_part(*scheduler.name)) : "scheduler";
    const auto known = m.scheduler_ids_.find(name);
    if (known != m.scheduler_ids_.end()) {
      id = known->second;
    } else {
      id = static_cast<int>(m.trace_.schedules.size());
      ScheduleFact fact;
      fact.name = name;
      fact.prepared = m.prepared_names_.count(name) > 0;
      m.trace_.schedules.push_back(fact);
      m.scheduler_ids_[name] = id;
    }
  }
  ScheduleFact& fact = m.trace_.schedules[static_cast<std::size_t>(id)];
  fact.fractional = fact.fractional || at;
  const bool prepared = fact.prepared && m.accelerate_.used && m.accelerate_.adjusts_scheduler;
  if (prepared && !m.accelerate_.sync) return;
  event(EventKind::SchedulerStep, line);
  m.trace_.events.back().target = id;
  m.trace_.events.back().counter = prepared && !m.accelerate_.split_batches ? m.trace_.world : 1;
}

void Library::report(const Value& shown, int line) {
  const Value value = shown.held();
  if (value.has_terms()) {
    event(EventKind::Report, line, *value.terms);
    return;
  }
  if (!value.heap) return;
  if (value.is(Type::Sequence) && value.heap->items.size() > 12) return;
  if (value.is(Type::Sequence) || value.is(Type::String))
    for (const Value& item : value.heap->items) report(item, line);
  if (value.is(Type::Dict))
    for (const auto& [key, item] : value.heap->fields) report(item, line);
}

// A function that trains an epoch and returns its mean loss reports it to whoever called.
void Library::report_returned(const Value& value, int line) {
  if (m.stack_.empty() || m.depth_ > 1) return;
  const auto effects = m.scan_.effects(m.stack_.back()->body);
  if (!(effects & kDoesStep) || !(effects & kDoesBackward) || !value.has_terms()) return;
  std::set<int> stamps;
  for (const Term& term : *value.terms)
    stamps.insert(m.trace_.symbols[static_cast<std::size_t>(term.symbol)].stamp);
  if (stamps.size() > 2) report(value, line);
}

// p.grad /= N: every accumulated gradient at once.
void Library::scale_gradients(const Value& factor, std::string_view op, int line) {
  if (op != "/" && op != "*") return;
  for (auto& buffer : m.buffers_) {
    if (buffer.terms.empty()) continue;
    const Value scaled = m.scale_by(m.with_terms(buffer.terms), factor, op == "/", nullptr);
    if (scaled.has_terms()) buffer.terms = *scaled.terms;
    // Sums over examples, divided by the examples that were counted up for them.
    const auto counted_up = static_cast<std::uint16_t>(kBatchSize | kIndex);
    if (op == "/" && factor.is(Type::Number) && (factor.taint & counted_up) == counted_up)
      for (Term& term : buffer.terms) term.normalised = term.normalised || term.counted;
  }
  (void)line;
}

void Library::set_gradient(const Value& given, int line) {
  const Value value = given.held();
  if (value.is(Type::None)) {
    zero(-1, line);
    return;
  }
  if (!value.has_terms()) return;
  if (m.buffers_.empty()) new_optimizer("(first)");
  for (auto& buffer : m.buffers_) buffer.terms = *value.terms;
}

void Library::note_division(const Value& loss, int line) {
  if (!loss.has_terms()) return;
  if (std::all_of(loss.terms->begin(), loss.terms->end(), [](const Term& t) { return t.window == 1; }))
    return;  // divided by something else
  const int stamp = m.trace_.symbols[static_cast<std::size_t>(loss.terms->front().symbol)].stamp;
  for (const Term& term : *loss.terms)
    if (m.trace_.symbols[static_cast<std::size_t>(term.symbol)].stamp != stamp) return;  // an average
  bool after = false;
  const auto& events = m.trace_.events;
  for (std::size_t i = events.size(); i-- > 0 && i + 64 > events.size() && !after;)
    if (events[i].kind == EventKind::Backward)
      for (const Term& term : events[i].terms) after = after || term.symbol == loss.terms->front().symbol;
  event(EventKind::Divide, line, *loss.terms);
  m.trace_.events.back().after_backward = after;
}

void Library::enter(const Value& context, int line) {
  if (!context.is(Type::Object)) return;
  const Role role = context.heap->role;
  if (role == Role::NoGrad) m.contexts_.push_back({role, true});
  if (role == Role::Manager) {  // ExitStack.enter_context: what it entered stays until the stack closes
    std::vector<Machine::Context> open;
    m.run_manager(context, nullptr, [&] {
      open = m.contexts_;
      return Flow::Normal;
    });
    m.contexts_ = std::move(open);
    return;
  }
  if (role != Role::NoSync && role != Role::Accumulate) return;
  m.trace_.saw_context = true;
  if (m.trace_.context_line == 0) m.trace_.context_line = line;
  bool active = true;
  if (role == Role::Accumulate) {
    m.trace_.used_accumulate = true;
    auto& state = m.accelerate_;
    // Accelerator.accumulate(): the last batch of a prepared loader ends a window too.
    if (m.last_batch_ && !m.trace_.endless) {
      state.counter = 0;
      state.sync = true;
    } else {
      state.sync = ++state.counter % static_cast<int>(state.steps) == 0;
    }
    if (m.trace_.accumulation == 0 && state.steps > 1) m.trace_.accumulation = state.steps;
  } else {
    active = context.heap->count >= 0;
    if (active) m.trace_.used_no_sync = true;
  }
  m.contexts_.push_back({role, active});
}

// timm's NativeScaler and its copies: scaler(loss, optimizer, ..., need_update or update_grad) goes backward,
// and where the flag holds unscales, clips and steps. It never zeroes.
Value Library::native_scaler(Arguments& arguments) {
  Terms terms = m.terms_of(arguments.positional[0], arguments.call);
  backward(m.with_terms(std::move(terms)), m.line_);
  const Value* flag = arguments.keyword("update_grad");
  if (!flag) flag = arguments.keyword("need_update");
  const auto update = flag ? m.truth(*flag) : std::optional<bool>(true);
  if (!update) {
    m.trace_.unknown_boundary = true;
    m.trace_.unknown_what = "the update flag of the gradient scaler";
  }
  if (!update || *update) step(optimizer_id(arguments.positional[1]), m.line_, false);
  return none_value();
}

// backward(gradient): the weight is in a gradient that was computed before.
Value Library::weighted_elsewhere(const Value& value) const {
  Terms terms = value.has_terms() ? *value.terms : Terms{};
  for (Term& term : terms) term.normalised = true;
  return m.with_terms(std::move(terms));
}

}  // namespace batchwright::check
