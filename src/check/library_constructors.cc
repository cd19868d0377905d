// Objects of training that are made by code outside the file: optimizers, schedulers, accelerators, engines.
#include "check/library.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {

using Type = Value::Type;

bool Library::constructor(const std::string& dotted, std::string_view name, Arguments& arguments,
                          Value& out) {
  if (dotted.find("argparse") != std::string::npos || contains_any(name, {"parse_args", "ArgumentParser"})) {
    out = m.named("args");
    return true;
  }
  if (name == "initialize" && (dotted.find("deepspeed") != std::string::npos || arguments.keyword("config") ||
                               arguments.keyword("config_params"))) {
    Value engine = object_value(Role::Engine);
    const Value* config = arguments.get(99, "config");
    if (!config) config = arguments.get(99, "config_params");
    if (config && config->is(Type::Dict)) {
      const auto steps = config->heap->fields.find("gradient_accumulation_steps");
      if (steps == config->heap->fields.end())
        m.engine_steps_ = 1;
      else if (const auto number = m.as_number(steps->second);
               number && number->number == 1 && !(number->taint & kAccumulation))
        m.engine_steps_ = 1;
    }
    out = sequence_value({engine, m.named("ds_optimizer"), m.named("ds_loader"), m.named("ds_scheduler")});
    return true;
  }
  if (name == "MultiSteps") {
    out = object_value(Role::Optimizer);
    out.heap->id = new_optimizer("MultiSteps");
    const Value* every = arguments.get(1, "every_k_schedule");
    const auto number = every ? m.as_number(*every) : std::nullopt;
    m.multi_steps_ = number && number->number > 1 && number->number <= 32 && (number->taint & kAccumulation)
                         ? number->number
                         : m.world_.accumulation;
    m.trace_.accumulation = m.multi_steps_;
    m.trace_.divides_inside = true;
    return true;
  }
  if (dotted.starts_with("optax.") && (name == "chain" || role_of_constructor(name) == Role::Optimizer ||
                                       is_one_of(name, {"adamw", "adam", "sgd", "lion"}))) {
    out = object_value(Role::Optimizer);
    out.heap->id = new_optimizer("optax");
    const auto take = [&](const Value& value) {
      if (value.is(Type::Object) && value.heap->role == Role::Scheduler)
        m.inner_schedules_.push_back(value.heap->id);
    };
    for (const Value& value : arguments.positional) take(value);
    for (const auto& [key, value] : arguments.keywords) take(value);
    return true;
  }
  const Role role = role_of_constructor(dotted);
  if (role == Role::None) return false;
  if (role == Role::Scheduler) {
    out = make_scheduler(name, arguments);
    return true;
  }
  if (role == Role::Accelerator) {
    out = make_accelerator(arguments);
    return true;
  }
  out = object_value(role);
  if (role == Role::Optimizer) {
    out.heap->id = new_optimizer(std::string(name));
    note_owned(out.heap->id, arguments);
  }
  return true;
}

Value Library::make_accelerator(Arguments& arguments) {
  Value made = object_value(Role::Accelerator);
  auto& state = m.accelerate_;
  state = {};
  state.used = true;
  const Value* steps = arguments.get(99, "gradient_accumulation_steps");
  if (!steps) steps = arguments.get(99, "gradient_accumulation_plugin");
  if (steps) {
    const auto number = m.as_number(*steps);
    const bool one = number && number->number == 1 && !(number->taint & kAccumulation);
    state.steps = one ? 1 : m.world_.accumulation;
    if (number && (number->taint & kAccumulation)) state.steps = number->number;
    const Expr* written = nullptr;
    if (arguments.call)
      for (const auto& [key, value] : arguments.call->keywords)
        if (key == "gradient_accumulation_steps") written = value;
    if (written && written->kind == ExprKind::Number)
      state.steps = written->number > 1 ? m.world_.accumulation : 1;
  }
  if (const Value* split = arguments.keyword("split_batches"))
    state.split_batches = split->is(Type::Number) && split->number != 0;
  if (const Value* steps_with = arguments.keyword("step_scheduler_with_optimizer"))
    if (steps_with->is(Type::Number) && steps_with->number == 0) state.adjusts_scheduler = false;
  return made;
}

// The longest of the lengths that a function of the step closes over: what its schedule ends with.
Value Library::longest_length(const Value* function) {
  Value longest;
  if (!function || !function->heap || !function->heap->scope) return longest;
  const auto look = [&](const Expr* part) {
    if (part->kind != ExprKind::Name) return;
    const Value* known = function->heap->scope->find(part->text);
    if (known && known->is(Type::Number) && (known->taint & kLength) && known->number > longest.number)
      longest = *known;
  };
  if (const Stmt* definition = function->heap->definition)
    each_expression_of(definition->body, look);
  else if (function->heap->lambda)
    each_expression(function->heap->lambda, look);
  return longest;
}

Value Library::make_scheduler(std::string_view name, Arguments& arguments) {
  Value made = object_value(Role::Scheduler);
  ScheduleFact fact;
  fact.name = name;
  fact.line = m.line_;
  fact.per_epoch = is_one_of(name, {"StepLR", "MultiStepLR", "ExponentialLR", "ReduceLROnPlateau",
                                    "ConstantLR", "MultiplicativeLR"});
  const auto take = [&](const Value* value) {
    if (!value) return;
    if (value->opaque() && value->name && fact.length_text.empty()) fact.length_text = *value->name;
    const auto number = m.as_number(*value);
    if (!number || fact.length >= 0) return;
    // A plain number says nothing of its unit; one computed from the loader does.
    if (!(number->taint & (kLength | kAccumulation))) return;
    fact.length = number->number;
    fact.taint = number->taint;
  };
  for (const auto key : {"num_training_steps", "T_max", "total_steps", "total_iters", "max_steps", "t_total",
                         "max_iters", "num_steps", "decay_steps", "total_num_steps", "t_initial",
                         "training_steps", "num_iterations", "lr_decay_iters", "T_0"})
    take(arguments.keyword(key));
  if (name == "OneCycleLR") {
    const Value* epochs = arguments.keyword("epochs");
    const Value* each = arguments.keyword("steps_per_epoch");
    if (epochs && each) {
      const auto a = m.as_number(*epochs), b = m.as_number(*each);
      const Value product = a && b ? number_value(std::min(a->number, 2.0) * b->number,
                                                  static_cast<std::uint16_t>(a->taint | b->taint))
                                   : Value{};
      take(&product);
    }
    take(arguments.get(2, "total_steps"));
  } else if (contains_any(name, {"CosineAnnealingLR", "CosineAnnealingWarm"})) {
    take(arguments.get(1, "T_max"));
  } else if (contains_any(name, {"schedule_with_warmup", "restarts_schedule"})) {
    take(arguments.get(2, "num_training_steps"));
  } else if (name == "get_scheduler") {
    take(arguments.get(3, "num_training_steps"));
  }
  if (name.ends_with("WarmRestarts")) {
    take(arguments.get(1, "T_0"));
    fact.restarts = fact.length > 0;
  }
  if (name == "LambdaLR") {
    const Value longest = longest_length(arguments.get(1, "lr_lambda"));
    take(&longest);
  }
  const Value* warmup = arguments.keyword("num_warmup_steps");
  if (!warmup) warmup = arguments.keyword("warmup_steps");
  if (!warmup && contains_any(name, {"schedule_with_warmup"})) warmup = arguments.get(1, "num_warmup_steps");
  if (warmup)
    if (const auto number = m.as_number(*warmup)) fact.warmup = number->number;
  made.heap->id = static_cast<int>(m.trace_.schedules.size());
  m.trace_.schedules.push_back(std::move(fact));
  return made;
}

}  // namespace batchwright::check
