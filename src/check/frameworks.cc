// Accelerate, Fabric, DeepSpeed, Lightning and JAX, as their documentation describes them.
#include <set>

#include "check/library.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

bool is_test(const Expr* expression) {
  return expression && (expression->kind == ExprKind::Compare || expression->kind == ExprKind::Unary ||
                        is_one_of(expression->text, {"and", "or"}));
}

}  // namespace

bool Library::accelerate_method(Value& object, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  const Role role = role_of(object);
  if (role == Role::Accelerator && !m.accelerate_.used) {
    // An accelerator from elsewhere: its N is set there. Without accumulate() the script does the work
    // itself.
    m.accelerate_.used = true;
    m.accelerate_.steps = m.scan_.mentions(".accumulate(") ? m.world_.accumulation : 1;
  }
  if (name == "accumulate") {
    out = object_value(Role::Accumulate);
    return true;
  }
  if (name == "no_sync" || name == "no_backward_sync") {
    out = object_value(Role::NoSync);
    const Value* enabled = name == "no_backward_sync" ? arguments.get(1, "enabled") : nullptr;
    // no_sync(use), which some base classes have
    const bool tested = arguments.call && arguments.call->kids.size() > 1 && is_test(arguments.call->kids[1]);
    if (name == "no_sync" && !given.empty() && (given[0].is_bool || tested)) enabled = given.data();
    const auto known = enabled ? m.truth(*enabled) : std::optional<bool>(true);
    if (!known) m.trace_.open_exchange = true;
    out.heap->count = known && !*known ? -1 : 0;
    return true;
  }
  if (role == Role::Fabric) {
    if (name == "backward" && !given.empty()) {
      backward(given[0], m.line_);
      return true;
    }
    if (is_one_of(name, {"setup", "setup_module", "setup_optimizers", "setup_dataloaders"})) {
      out = given.size() == 1 ? given[0] : sequence_value(given);
      return !given.empty();
    }
    return false;
  }
  if (name == "backward" && !given.empty()) {
    Terms terms = m.terms_of(given[0], arguments.call);
    if (m.accelerate_.steps > 1) {
      m.trace_.divides_inside = true;
      m.trace_.accumulation = m.accelerate_.steps;
      for (Term& term : terms) term.window /= m.accelerate_.steps;
    }
    m.accelerator_backward_ = true;
    backward(m.with_terms(std::move(terms)), m.line_);
    m.accelerator_backward_ = false;
    return true;
  }
  if (is_one_of(name, {"prepare", "prepare_model", "prepare_optimizer", "prepare_scheduler",
                       "prepare_data_loader"})) {
    for (Value& value : given) {
      if (value.is(Type::Object) && value.heap->role == Role::Scheduler && m.accelerate_.used)
        m.trace_.schedules[static_cast<std::size_t>(value.heap->id)].prepared = true;
      if (value.opaque() && value.name && role_of_name(*value.name) == Role::Scheduler)
        m.prepared_names_.insert(std::string(last_part(*value.name)));
    }
    m.loader_prepared_ = true;
    out = given.size() == 1 ? given[0] : sequence_value(given);
    return true;
  }
  if (is_one_of(name, {"gather", "gather_for_metrics", "reduce", "pad_across_processes", "unwrap_model"}) &&
      !given.empty()) {
    out = given[0];
    return true;
  }
  if (name == "autocast" || name == "profile" || name == "main_process_first" ||
      name == "local_main_process_first" || name == "join_uneven_inputs") {
    out = object_value(Role::OtherContext);
    return true;
  }
  if (name == "unscale_gradients") {
    for (auto& buffer : m.buffers_)
      for (Term& term : buffer.terms) term.scaled = false;
    return true;
  }
  if (is_one_of(name, {"print", "log"})) {
    for (const Value& value : given) report(value, m.line_);
    return true;
  }
  if (is_one_of(name, {"save_state", "save_model", "save"})) {
    event(EventKind::Save, m.line_);
    m.trace_.events.back().counter = m.period_counter_;
    return true;
  }
  return false;
}

bool Library::engine_method(Value& object, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  (void)object;
  double steps = m.engine_steps_;
  if (steps == 0) steps = m.scan_.accumulates() || m.scan_.mentions("deepspeed") ? m.world_.accumulation : 1;
  if (name == "backward" && !given.empty()) {
    Terms terms = m.terms_of(given[0], arguments.call);
    if (steps > 1) {
      m.trace_.divides_inside = true;
      m.trace_.accumulation = steps;
      for (Term& term : terms) term.window /= steps;
    }
    backward(m.with_terms(terms), m.line_);
    out = given[0];
    return true;
  }
  if (name == "is_gradient_accumulation_boundary") {
    out = bool_value((m.engine_micro_steps_ + 1) % static_cast<int>(steps) == 0);
    return true;
  }
  if (name == "step") {
    if (++m.engine_micro_steps_ % static_cast<int>(steps) == 0) {
      step(optimizer_id(m.named("engine")), m.line_, false);
      zero(-1, m.line_);
    }
    return true;
  }
  if (name == "zero_grad") return true;
  if (name == "gradient_accumulation_steps") {
    out = number_value(steps, kAccumulation);
    return true;
  }
  return false;
}

bool Library::lightning_method(Value& object, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  const bool self = object.is(Type::Object) && object.heap->definition;
  if (!self) return false;
  if (name == "optimizers") {
    if (!m.configured_.is(Type::None) &&
        (m.configured_.is(Type::Object) || m.configured_.is(Type::Sequence))) {
      out = m.configured_;
      return true;
    }
    out = m.named("optimizers()");
    Value made = object_value(Role::Optimizer);
    made.heap->id = optimizer_id(out);
    out = made;
    return true;
  }
  if (name == "lr_schedulers") {
    out = m.named("lr_schedulers()");
    Value made = object_value(Role::Scheduler);
    out = m.named("lr_scheduler");
    return true;
  }
  if (is_one_of(name, {"log", "log_dict"})) {
    for (const Value& value : given) report(value, m.line_);
    return true;
  }
  if (name == "clip_gradients") {
    clip(m.line_, false);
    return true;
  }
  if (name == "toggle_optimizer" && !given.empty()) {
    m.toggled_ = optimizer_id(given[0]);
    return true;
  }
  if (name == "untoggle_optimizer") m.toggled_ = -1;
  if (name == "untoggle_optimizer" || name == "save_hyperparameters") return true;
  return false;
}

// A Trainer subclass calling the method that it overrides.
bool Library::super_method(std::string_view name, Arguments& arguments, Value& out) {
  const Value* self = m.scope_->find("self");
  if (!self || !self->is(Type::Object)) return false;
  if (name == "compute_loss") {
    out = m.symbol_value(arguments.call);
    const Value* count = arguments.get(3, "num_items_in_batch");
    bool passed = count && !count->is(Type::None);
    for (std::size_t i = 1; arguments.call && i < arguments.call->kids.size(); ++i)
      if (arguments.call->kids[i] && arguments.call->kids[i]->kind == ExprKind::Starred) passed = true;
    Terms terms = *out.terms;
    for (Term& term : terms) term.normalised = passed;
    out = m.with_terms(terms);
    const Value* both = arguments.get(2, "return_outputs");
    const auto known = both ? m.truth(*both) : std::optional<bool>(false);
    if (both && (!known || *known)) out = sequence_value({out, Value{}});
    return true;
  }
  if (name == "training_step") {
    Terms terms = *m.symbol_value(arguments.call).terms;
    if (m.trainer_divides_)
      for (Term& term : terms) term.window /= m.world_.accumulation;
    else
      for (Term& term : terms) term.normalised = true;
    if (!m.lightning_divides_) backward(m.with_terms(terms), m.line_);
    out = m.with_terms(terms);
    return true;
  }
  if (name == "log" || name == "evaluate") return true;
  return false;
}

// gluon.Trainer.step(n) and update(n) divide the gradients by n (mxnet/gluon/trainer.py,
// _optimizer.rescale_grad); a loss is one number for each example, and its backward adds them up.
void Library::gluon_step(const Value& trainer, const Value& examples) {
  const int optimizer = optimizer_id(trainer);
  auto& buffer = m.buffers_[static_cast<std::size_t>(optimizer)];
  const auto number = m.as_number(examples);
  for (Term& term : buffer.terms) {
    if (!number) {
      term.uncertain = true;
      continue;
    }
    term.counted = true;
    if (number->taint & kGlobalBatch) term.normalised = true;
    if (number->taint & kAccumulation) term.window /= m.world_.accumulation;
  }
  step(optimizer, m.line_, false);
  // What was stepped on stays in the buffer as it was computed.
  for (Term& term : buffer.terms)
    if (number && (number->taint & kAccumulation)) term.window *= m.world_.accumulation;
}

// Unless grad_req is "add", a backward of MXNet writes over what the one before it left.
void Library::overwrite_gradients() {
  if (!m.scan_.mentions("mxnet") || m.scan_.mentions("\"add\"") || m.scan_.mentions("'add'")) return;
  for (std::size_t i = 0; i < m.buffers_.size(); ++i) {
    Terms older;
    std::erase_if(m.buffers_[i].terms, [&](const Term& term) {
      const bool old = m.trace_.symbols[static_cast<std::size_t>(term.symbol)].stamp != m.stamp_;
      if (old) older.push_back(term);
      return old;
    });
    if (older.empty()) continue;
    event(EventKind::Zero, m.line_, std::move(older));
    m.trace_.events.back().target = static_cast<int>(i);
  }
}

Value Library::without_differentiated(const Value& loss, const Expr* origin) const {
  std::set<int> known;
  for (const Event& event : m.trace_.events)
    if (event.kind == EventKind::Backward)
      for (const Term& term : event.terms) known.insert(term.symbol);
  Terms fresh = loss.has_terms() ? *loss.terms : Terms{};
  std::erase_if(fresh, [&](const Term& term) { return known.count(term.symbol) > 0; });
  return fresh.empty() ? m.symbol_value(origin) : m.with_terms(std::move(fresh));
}

// JAX: gradients are values, and optax turns them into updates.
bool Library::functional(std::string_view dotted, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  const bool jax = dotted.starts_with("jax") || dotted.starts_with("eqx") || dotted.starts_with("nnx") ||
                   dotted.starts_with("optax");
  if (is_one_of(name, {"value_and_grad", "filter_value_and_grad"}) || (name == "grad" && jax)) {
    out = m.named(name == "grad" ? "(gradient function)" : "(value and gradient function)");
    if (const Value* aux = arguments.keyword("has_aux"); aux && aux->number != 0)
      out = m.named(name == "grad" ? "(gradient and aux gradient function)"
                                   : "(value, aux and gradient function)");
    if (!given.empty() && (given[0].is(Type::Function) || given[0].is(Type::Lambda)))
      m.differentiated_[*out.name] = given[0];
    return true;
  }
  if (dotted.starts_with("(") && dotted.ends_with("gradient function)")) {
    Value loss;
    const auto function = m.differentiated_.find(dotted);
    if (function != m.differentiated_.end()) loss = m.call_function(function->second, arguments);
    if (loss.is(Type::Sequence) && !loss.heap->items.empty()) loss = loss.heap->items[0];
    // Gradients are values here: what was computed before is not in them.
    loss = without_differentiated(loss, arguments.call);
    const Value gradient = m.with_terms(note_gradient(loss, arguments.call));
    if (dotted == "(gradient function)") {
      out = gradient;
    } else if (dotted.starts_with("(gradient and aux")) {
      out = sequence_value({gradient, Value{}});
    } else {
      Value value = dotted.find("aux") == std::string_view::npos ? loss : sequence_value({loss, Value{}});
      out = sequence_value({value, gradient});
    }
    return true;
  }
  if (is_one_of(name, {"tree_map", "tree_multimap", "map_structure"}) ||
      (name == "map" && dotted.find("tree") != std::string_view::npos)) {
    if (given.size() < 2) return true;
    Arguments inner;
    inner.call = arguments.call;
    for (std::size_t i = 1; i < given.size(); ++i) {
      const Value& tree = given[i];
      inner.positional.push_back(tree.is(Type::Sequence) && tree.heap->uniform && !tree.heap->items.empty()
                                     ? tree.heap->items[0]
                                     : tree);
    }
    if (given[0].is(Type::Function) || given[0].is(Type::Lambda)) {
      out = m.call_function(given[0], inner);
    } else if (given[0].opaque() && given[0].name && contains_any(*given[0].name, {"zeros"})) {
      out = number_value(0);
    } else if (given[0].opaque() && given[0].name && contains_any(*given[0].name, {"add"}) &&
               inner.positional.size() == 2) {
      out = m.binary("+", inner.positional[0], inner.positional[1], arguments.call);
    } else {
      out = inner.positional[0];
    }
    return true;
  }
  if (name == "apply_updates" && given.size() >= 2) {
    const Value updates =
        given[1].is(Type::Sequence) && !given[1].heap->items.empty() ? given[1].heap->items[0] : given[1];
    if (updates.has_terms()) apply(*updates.terms, -1, m.line_);
    out = m.named("params");
    return true;
  }
  if (name == "cond" && given.size() >= 3) {  // tf.cond, lax.cond: a branch that is a call
    const auto known = m.truth(given[0]);
    const Value& branch = given[!known || *known ? 1 : 2];
    if (!known && m.loops_ > 0 && (m.scan_.effects(arguments.call) & kDoesStep)) {
      m.trace_.unknown_boundary = true;
      m.trace_.unknown_what = "the first argument of cond()";
    }
    Arguments inner;
    inner.call = arguments.call;
    inner.positional.assign(given.begin() + 3, given.end());
    if (branch.is(Type::Function) || branch.is(Type::Lambda)) out = m.call_function(branch, inner);
    return true;
  }
  if (is_one_of(name, {"equal", "greater_equal", "greater", "less", "not_equal"}) && given.size() >= 2) {
    const auto x = m.as_number(given[0]), y = m.as_number(given[1]);
    if (!x || !y) return true;
    if ((y->taint & kAccumulation) && m.trace_.accumulation == 0 && y->number >= 2)
      m.trace_.accumulation = y->number;
    out = bool_value(name == "equal"           ? x->number == y->number
                     : name == "not_equal"     ? x->number != y->number
                     : name == "greater"       ? x->number > y->number
                     : name == "greater_equal" ? x->number >= y->number
                                               : x->number < y->number);
    return true;
  }
  if (is_one_of(name, {"cast", "identity", "stop_gradient", "constant"}) && !given.empty() &&
      (dotted.starts_with("t") || dotted.starts_with("j"))) {
    out = given[0].held();
    return true;
  }
  if (is_one_of(name, {"jit", "filter_jit", "pmap", "vmap", "checkpoint", "remat"}) && !given.empty() &&
      (given[0].is(Type::Function) || given[0].is(Type::Lambda) ||
       (given[0].opaque() && given[0].name && given[0].name->ends_with("gradient function)")))) {
    out = given[0];
    return true;
  }
  if (is_one_of(name, {"pmean", "psum"}) && !given.empty()) {
    out = given[0];
    return true;
  }
  if (is_one_of(name, {"scan", "fori_loop"}) && dotted.find("lax") != std::string_view::npos &&
      given.size() >= 2) {
    // lax.scan(f, init, xs): f(carry, x) -> (carry, y), once for each micro-batch.
    const bool scan = name == "scan";
    const Value& body = scan ? given[0] : given.size() > 2 ? given[2] : given[0];
    Value carry = scan ? given[1] : given.size() > 3 ? given[3] : Value{};
    if (!body.is(Type::Function) && !body.is(Type::Lambda)) return true;
    if (m.trace_.loop_window == 0) m.trace_.loop_window = m.world_.accumulation;
    m.trace_.micro_loop_named = true;
    for (int i = 0; i < static_cast<int>(m.world_.accumulation); ++i) {
      m.stamp_ = ++m.stamps_;
      Arguments inner;
      inner.call = arguments.call;
      inner.positional =
          scan ? std::vector<Value>{carry, Value{}} : std::vector<Value>{number_value(i, kIndex), carry};
      const Value result = m.call_function(body, inner);
      carry = scan && result.is(Type::Sequence) && result.heap->items.size() == 2 ? result.heap->items[0]
                                                                                  : result;
    }
    out = scan ? sequence_value({carry, Value{}}) : carry;
    return true;
  }
  return false;
}

}  // namespace batchwright::check
