// Methods that train: of losses, optimizers, schedulers and scalers.
#include "check/library.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

std::string_view receiver_text(const Arguments& arguments) {
  const Expr* call = arguments.call;
  if (!call || call->kids.empty() || !call->kids[0] || call->kids[0]->kids.empty()) return {};
  return call->kids[0]->kids[0] ? call->kids[0]->kids[0]->source : std::string_view{};
}

}  // namespace

bool Library::training_method(Value& object, Role role, std::string_view name, Arguments& arguments,
                              Value& out) {
  auto& given = arguments.positional;
  const std::string_view receiver = last_part(receiver_text(arguments));
  if (name == "backward") {
    if (role == Role::Accelerator || role == Role::Engine || role == Role::Fabric) return false;
    if (!object.has_terms() && !given.empty() &&
        (given[0].has_terms() || contains_any(lower(arguments.call->source), {"loss"}))) {
      // optimizer.backward(loss), booster.backward(loss, optimizer), torch.autograd.backward(output,
      // gradient)
      const bool gradient = given.size() > 1 && receiver == "autograd";
      backward(gradient ? weighted_elsewhere(given[0]) : given[0], m.line_);
      out = none_value();
    } else if (object.has_terms() &&
               (arguments.keyword("gradient") ||
                (!given.empty() && !given[0].is(Type::Number) && !given[0].is(Type::None)))) {
      backward(weighted_elsewhere(object), m.line_);
    } else {
      backward(object, m.line_);
    }
    return true;
  }
  if (name == "manual_backward" && !given.empty()) {
    backward(given[0], m.line_);
    return true;
  }
  if (zeroes_by_name(name) || (name == "zero" && given.empty() && contains_any(receiver, {"tape"}))) {
    if (m.accelerate_.used && !m.accelerate_.sync &&
        (role == Role::Optimizer || role_of_name(receiver) == Role::Optimizer))
      return true;
    zero(role == Role::Optimizer && m.scan_.steps(receiver) ? optimizer_id(object) : -1, m.line_);
    return true;
  }
  if (role == Role::Scaler) {
    if (name == "scale" && !given.empty()) {
      Terms terms = m.terms_of(given[0], arguments.call);
      for (Term& term : terms) term.scaled = true;
      out = m.with_terms(std::move(terms));
      return true;
    }
    if (name == "unscale_" && !given.empty()) {
      auto& buffer = m.buffers_[static_cast<std::size_t>(optimizer_id(given[0]))];
      ++buffer.unscaled;
      for (auto& each : m.buffers_)
        for (Term& term : each.terms) term.scaled = false;
      event(EventKind::Unscale, m.line_);
      m.trace_.events.back().repeated = buffer.unscaled > 1;
      return true;
    }
    if (name == "step" && !given.empty()) {
      step(optimizer_id(given[0]), m.line_, true);
      return true;
    }
    if (is_one_of(name, {"update", "get_scale", "is_enabled", "state_dict", "load_state_dict"})) return true;
    return false;
  }
  if (role == Role::Scheduler && is_one_of(name, {"step", "step_update", "step_and_update_lr"})) {
    // step(epoch + i / n)
    const bool at = !given.empty() && arguments.call && arguments.call->kids.size() > 1 &&
                    arguments.call->kids[1]->kind == ExprKind::Binary;
    schedule_step(object, m.line_, at);
    return true;
  }
  if (role == Role::Ema && is_one_of(name, {"step", "update"})) {
    event(EventKind::Ema, m.line_);
    return true;
  }
  if (contains_any(name, {"clip_grad_norm", "clip_gradients", "clip_grad_value", "clip_master_grads"})) {
    clip(m.line_, role == Role::Accelerator || role == Role::Fabric);
    return true;
  }
  if (name == "apply_gradients") {
    Value gradient = arguments.get(0, "grads") ? *arguments.get(0, "grads") : Value{};
    if (gradient.is(Type::Iterator) && !gradient.heap->items.empty()) gradient = gradient.heap->items[0];
    if (gradient.is(Type::Iterator) && !gradient.heap->items.empty()) gradient = gradient.heap->items[0];
    Terms terms = m.terms_of(gradient, arguments.call);
    if (m.multi_steps_ > 0 && role != Role::Optimizer)  // a TrainState whose optimizer is MultiSteps
      collect(std::move(terms), optimizer_id(m.named("MultiSteps")));
    else
      apply(terms, role == Role::Optimizer ? optimizer_id(object) : -1, m.line_);
    out = m.named("state");
    return true;
  }
  if (name == "gradient" && (role == Role::Tape || contains_any(receiver, {"tape"})) && !given.empty()) {
    const Value loss = without_differentiated(given[0].held(), arguments.call);
    out = sequence_value({m.with_terms(note_gradient(loss, arguments.call))}, true);
    return true;
  }
  if (is_one_of(name, {"get_scaled_loss", "get_unscaled_gradients", "scale_loss"}) && !given.empty()) {
    out = given[0];
    return true;
  }
  // optax: an optimizer by any name turns (gradients, state, parameters) into updates.
  const bool transforms = role == Role::Optimizer || (given.size() >= 2 && m.scan_.mentions("apply_updates"));
  if (transforms && name == "update" && !given.empty() &&
      (given[0].has_terms() || given[0].is(Type::Sequence))) {
    if (m.multi_steps_ > 0) {
      collect(
          m.terms_of(given[0].is(Type::Sequence) && !given[0].heap->items.empty() ? given[0].heap->items[0]
                                                                                  : given[0],
                     arguments.call),
          optimizer_id(object));
      out = sequence_value({number_value(0), m.named("opt_state")});
    } else {
      out = sequence_value({given[0], m.named("opt_state")});
    }
    return true;
  }
  if (name == "minimize") {
    Value loss = given.empty() ? Value{} : given[0];
    if (loss.is(Type::Lambda) || loss.is(Type::Function)) {
      Arguments none;
      none.call = arguments.call;
      loss = m.call_function(loss, none);
    }
    apply(note_gradient(loss, arguments.call), optimizer_id(object), m.line_);
    return true;
  }
  if (m.scan_.is_gluon_step(name, receiver) && !given.empty()) {
    gluon_step(object, given[0]);
    return true;
  }
  if (name == "multiply_grads" && !given.empty()) {  // fairseq's optimizers
    scale_gradients(given[0], "*", m.line_);
    return true;
  }
  if (name == "optimizer_step" && is_one_of(receiver, {"xm", "xla_model"}) && !given.empty()) {
    step(optimizer_id(given[0]), m.line_, false);
    return true;
  }
  if (name == "step" || name == "optimizer_step") {
    if (role == Role::Engine) return false;
    const bool lone =
        name == "step" && given.empty() && role == Role::None && !m.scan_.names_optimizer() &&
        !contains_any(lower(receiver), {"prof", "env", "bar", "timer", "sim", "game", "world", "self"});
    const bool known =
        role == Role::Optimizer || lone || m.scan_.zeroes(receiver) || m.scan_.groups(receiver);
    if (!known)
      return role != Role::None ? false
                                : name == "step" && given.empty() && contains_any(lower(receiver), {"optim"});
    if (!given.empty() && (given[0].is(Type::Function) || given[0].is(Type::Lambda))) {
      Arguments none;
      none.call = arguments.call;
      m.call_function(given[0], none);
    }
    step(optimizer_id(object), m.line_, false);
    return true;
  }
  if (contains_any(name, {"register_post_accumulate_grad_hook", "register_optimizer_step_hook"}) &&
      !given.empty()) {
    if ((given[0].is(Type::Function) || given[0].is(Type::Lambda)) && m.hooks_.size() < 4)
      m.hooks_.push_back(given[0]);
    return true;
  }
  if (name == "enter_context" && !given.empty()) {
    enter(given[0], m.line_);
    return true;
  }
  return false;
}

}  // namespace batchwright::check
