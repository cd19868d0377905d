#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;
constexpr int kMaxCallDepth = 16;

bool holds_yield(const Expr* expression) {
  if (!expression) return false;
  if (expression->kind == ExprKind::Yield) return true;
  for (const Expr* kid : expression->kids)
    if (holds_yield(kid)) return true;
  return false;
}

bool holds_yield(const std::vector<Stmt*>& block) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) continue;
    if (holds_yield(statement->value) || holds_yield(statement->body) || holds_yield(statement->orelse))
      return true;
  }
  return false;
}

bool is_property(const Stmt* function) {
  for (const Expr* decorator : function->decorators)
    if (decorator && decorator->text == "property") return true;
  return false;
}

// contextlib.contextmanager
bool is_manager(const Stmt* function) {
  for (const Expr* decorator : function->decorators)
    if (decorator && decorator->text.ends_with("contextmanager")) return true;
  return false;
}

// @torch.no_grad(), @torch.inference_mode()
bool cuts_gradients(const Stmt* function) {
  for (const Expr* decorator : function->decorators)
    if (decorator && contains_any(decorator->source, {"no_grad", "inference_mode"})) return true;
  return false;
}

bool is_static(const Stmt* function) {
  for (const Expr* decorator : function->decorators)
    if (decorator && decorator->text == "staticmethod") return true;
  return false;
}

bool cuts_dynamically(std::string_view function) {
  const std::string word = lower(function);
  return contains_any(word, {"micro", "batch", "pack", "split"}) &&
         contains_any(word,
                      {"rearrange", "dynamic", "by_token", "token_budget", "bin_pack", "pack_", "max_token"});
}

// Nothing but a docstring, pass, raise or a bare return: a subclass in another file does the work.
bool is_placeholder(const Stmt* function) {
  return std::all_of(function->body.begin(), function->body.end(), [](const Stmt* statement) {
    const bool says =
        statement->kind == StmtKind::Expression && statement->value &&
        (statement->value->kind == ExprKind::String || statement->value->kind == ExprKind::Constant);
    return says || statement->kind == StmtKind::Raise || statement->kind == StmtKind::Other ||
           (statement->kind == StmtKind::Return && !statement->value);
  });
}

bool is_module(const Stmt* type) {
  for (const Expr* base : type->bases)
    if (base && contains_any(base->source, {"Module", "Model", "PreTrained", "Layer"}) &&
        base->source.find("Lightning") == std::string_view::npos)
      return true;
  return false;
}

}  // namespace

Arguments Machine::arguments_of(const Expr* call) {
  Arguments arguments;
  arguments.call = call;
  for (std::size_t i = 1; i < call->kids.size(); ++i) {
    const Expr* kid = call->kids[i];
    Value value = evaluate(kid);
    if (kid && kid->kind == ExprKind::Starred && kid->text == "*" && value.is(Type::Sequence))
      arguments.positional.insert(arguments.positional.end(), value.heap->items.begin(),
                                  value.heap->items.end());
    else if (kid && kid->kind == ExprKind::Starred && kid->text == "**") {
      if (value.is(Type::Dict))
        for (const auto& [name, item] : value.heap->fields) arguments.keywords.emplace_back(name, item);
    } else {
      arguments.positional.push_back(std::move(value));
    }
  }
  for (const auto& [name, value] : call->keywords) arguments.keywords.emplace_back(name, evaluate(value));
  return arguments;
}

Value Machine::evaluate_call(const Expr* call) {
  const Expr* function = call->kids.empty() ? nullptr : call->kids[0];
  if (!function) return {};
  if (function->kind == ExprKind::Attribute) {
    const Value object = evaluate(function->kids[0]);
    Arguments arguments = arguments_of(call);
    line_ = call->line;
    return call_method(object, function->text, arguments);
  }
  const Value target = evaluate(function);
  Arguments arguments = arguments_of(call);
  line_ = call->line;
  return call_value(target, arguments);
}

Value Machine::call_value(const Value& function, Arguments& arguments) {
  switch (function.type) {
    case Type::Function:
    case Type::Lambda:
      return call_function(function, arguments);
    case Type::Class:
      return construct(function, arguments);
    case Type::Bound:
      return call_method(function.heap->items[0], *function.name, arguments);
    case Type::Object: {
      Value made;
      if (function.heap->definition && !is_module(function.heap->definition))
        if (const Value* method = method_of(function, "__call__", made))
          return call_function(*method, arguments);
      return opaque_call(arguments, identity_of(function));
    }
    default:
      break;
  }
  if (function.opaque() && function.name && arguments.positional.size() >= 2 &&
      is_one_of(last_part(*function.name), {"loss_scaler", "native_scaler", "amp_scaler"}))
    return Library{*this}.native_scaler(arguments);
  if (function.opaque() && function.name && !function.has_terms())
    return Library{*this}.call(*function.name, arguments);
  Value result = opaque_call(arguments, identity_of(function));
  note_summed(function, result);
  return result;
}

// What a criterion that was made with reduction="sum" returns is a sum.
void Machine::note_summed(const Value& criterion, const Value& result) {
  if (!criterion.has_terms() || !result.has_terms()) return;
  const auto symbol = [&](const Value& value) -> Symbol& {
    return trace_.symbols[static_cast<std::size_t>(value.terms->front().symbol)];
  };
  if (symbol(criterion).summed) symbol(result).summed = true;
}

// A call of code that is not here: its result may be a loss, so it is a symbol.
Value Machine::opaque_call(Arguments& arguments, std::string_view callee) {
  if (const Expr* call = arguments.call;
      call && !call->kids.empty() && call->kids[0] && cuts_dynamically(call->kids[0]->text)) {
    // Micro-batches by tokens: their number differs from one window to the next.
    trace_.dynamic_windows = true;
    dynamic_count_ = dynamic_count_ == 3 ? 5 : 3;
    Value cut = sequence_value(std::vector<Value>(static_cast<std::size_t>(dynamic_count_)));
    if (call->kids[0]->text.find("rearrange") != std::string_view::npos)
      return sequence_value({cut, Value{}});
    return cut;
  }
  for (const Value& value : arguments.positional)
    if (value.is(Type::Sequence) && value.heap->items.empty()) {
      value.heap->items.emplace_back();
      value.heap->uniform = value.heap->filled_elsewhere = true;
    }
  Value result = symbol_value(arguments.call);
  const int made = result.terms->front().symbol;
  note_modules(trace_.symbols[static_cast<std::size_t>(made)], arguments, callee);
  bool takes_window = false, takes_loss = false;
  const auto look = [&](const Value& value) {
    takes_window = takes_window || (value.is(Type::Number) && (value.taint & kAccumulation)) ||
                   (value.opaque() && value.name && !value.has_terms() && names_accumulation(*value.name));
    if (value.has_terms())
      for (const Term& term : *value.terms)
        takes_loss = takes_loss || term.scaled || term.window != 1 ||
                     !trace_.symbols[static_cast<std::size_t>(term.symbol)].count;
    // A window's count handed to the loss function divides inside it.
    if ((value.taint & kWindowCount) || (value.opaque() && value.name && names_window_count(*value.name))) {
      Terms terms = *result.terms;
      for (Term& term : terms) term.normalised = true;
      result = with_terms(terms);
    }
  };
  for (const Value& value : arguments.positional) look(value);
  for (const auto& [name, value] : arguments.keywords) {
    look(value);
    if (value.has_terms() && names_window_count(name)) {
      Terms terms = *result.terms;
      for (Term& term : terms) term.normalised = true;
      result = with_terms(terms);
    }
  }
  if (takes_window && takes_loss) {
    Terms terms = *result.terms;
    for (Term& term : terms) term.uncertain = true;
    result = with_terms(terms);
  }
  result.cut = in_context(Role::NoGrad);
  return result;
}

Value Machine::call_method(Value object, std::string_view name, Arguments& arguments) {
  arguments.receiver = object;
  Value made;
  if (object.is(Type::Object)) {
    const auto field = object.heap->fields.find(name);
    if (field != object.heap->fields.end() && !field->second.opaque())
      return call_value(field->second, arguments);
    if (object.heap->role == Role::None || object.heap->role == Role::Trainer)
      if (const Value* method = method_of(object, name, made))
        return call_value(*method, arguments);  // a property gives any value
  }
  if (object.is(Type::Class)) {
    const Value function = attribute_of(object, name, nullptr);
    if (function.is(Type::Function)) return call_function(function, arguments);
  }
  // A method that only this file can mean, on an object that came from elsewhere.
  if (object.opaque() && object.name && !object.has_terms())
    if (const Definition* local = arguments.call ? scan_.callee_of(arguments.call) : nullptr;
        local && (scan_.effects(local->function->body) & kTraining)) {
      made.type = Type::Function;
      made.heap = std::make_shared<Heap>();
      made.heap->definition = local->function;
      made.heap->scope = globals_;
      made.heap->items.push_back(local->owner ? instance(local->owner) : object);
      return call_function(made, arguments);
    }
  Value result = Library{*this}.method(object, name, arguments);
  if (object.is(Type::Object))
    if (const auto field = object.heap->fields.find(name); field != object.heap->fields.end())
      note_summed(field->second, result);
  return result;
}

const Value* Machine::method_of(const Value& object, std::string_view name, Value& made) {
  const Stmt* method = scan_.find_method(object.heap->definition, name);
  if (!method) return nullptr;
  made.type = Type::Function;
  made.heap = std::make_shared<Heap>();
  made.heap->definition = method;
  made.heap->scope = globals_;
  if (!is_static(method)) made.heap->items.push_back(object);
  if (is_property(method)) {
    Arguments none;
    made = call_function(made, none);
  }
  return &made;
}

Value Machine::call_function(const Value& function, Arguments& arguments) {
  if (!function.heap) return opaque_call(arguments);
  const Stmt* definition = function.heap->definition;
  const Expr* lambda = function.heap->lambda;
  if ((!definition && !lambda) || depth_ >= kMaxCallDepth || !spend()) return opaque_call(arguments);
  if (definition) {
    for (const Stmt* active : stack_)
      if (active == definition) return opaque_call(arguments);  // recursion is not followed
    entered_.insert(definition);
  }
  auto scope = new_scope(function.heap->scope ? function.heap->scope : globals_);
  if (lambda) {
    for (std::size_t i = 0; i < lambda->names.size(); ++i)
      scope->set(lambda->names[i], i < arguments.positional.size() ? arguments.positional[i] : Value{});
  } else {
    bind(definition, arguments, function.heap->items.empty() ? nullptr : &function.heap->items[0], *scope);
    if (is_manager(definition)) {
      Value manager = object_value(Role::Manager);
      manager.heap->definition = definition;
      manager.heap->scope = scope;
      return manager;
    }
    if (names_ema(definition->text)) Library{*this}.event(EventKind::Ema, line_);
    stack_.push_back(definition);
  }
  const auto outer = scope_;
  scope_ = scope;
  ++depth_;
  Value result = none_value();
  bool abstract = false;  // raises NotImplementedError: a subclass in another file does the work
  if (lambda) {
    result = evaluate(lambda->kids.empty() ? nullptr : lambda->kids[0]);
  } else {
    const bool generator = holds_yield(definition->body);
    auto yields = std::move(yields_);
    yields_.clear();
    const Flow flow = execute(definition->body);
    if (flow == Flow::Return) result = returned_;
    abstract = (flow == Flow::Raise || result.is(Type::None)) && is_placeholder(definition);
    if (generator) result = sequence_value(std::move(yields_));
    yields_ = std::move(yields);
  }
  --depth_;
  scope_ = outer;
  if (definition) stack_.pop_back();
  if (abstract) return opaque_call(arguments);
  if (definition && cuts_gradients(definition)) result.cut = true;
  return result;
}

void Machine::bind(const Stmt* function, Arguments& arguments, const Value* self, Scope& scope) {
  std::size_t place = 0;
  bool after_star = false;
  for (std::size_t i = 0; i < function->parameters.size(); ++i) {
    const Parameter& parameter = function->parameters[i];
    if (i == 0 && self) {
      scope.set(parameter.name, *self);
      continue;
    }
    if (parameter.star) {
      if (!after_star) {
        std::vector<Value> rest;
        for (; place < arguments.positional.size(); ++place) rest.push_back(arguments.positional[place]);
        if (!rest.empty()) scope.set(parameter.name, sequence_value(std::move(rest)));
      }
      after_star = true;
      if (!scope.find_here(parameter.name)) scope.set(parameter.name, named(std::string(parameter.name)));
      continue;
    }
    Value value;
    if (const Value* given = arguments.keyword(parameter.name))
      value = *given;
    else if (!after_star && place < arguments.positional.size())
      value = arguments.positional[place++];
    else if (parameter.fallback)
      value = default_of(parameter, scope);
    else
      value = named(std::string(parameter.name));
    // An open value takes the parameter's name when its own says less.
    if (value.opaque() && !value.has_terms() && !value.name) {
      const double size = value.number;
      if (names_accumulation(parameter.name)) value = named(std::string(parameter.name));
      value.number = size;
    }
    tag_by_name(parameter.name, value, parameter.fallback);
    scope.set(parameter.name, std::move(value));
  }
}

// A default belongs to the place of the definition.
Value Machine::default_of(const Parameter& parameter, const Scope& scope) {
  if (depth_ >= kMaxCallDepth) return {};  // def f(a=f())
  const auto caller = scope_;
  if (scope.parent) scope_ = scope.parent;
  ++depth_;
  Value value = evaluate(parameter.fallback);
  --depth_;
  scope_ = caller;
  return value;
}

// The argument that some other file would pass.
Value Machine::open_argument(const Parameter& parameter) {
  if (names_accumulation(parameter.name) || scan_.is_window_name(parameter.name))
    return number_value(world_.accumulation, kAccumulation);
  if (parameter.fallback && parameter.fallback->kind == ExprKind::Constant &&
      parameter.fallback->text != "None")
    return named(std::string(parameter.name));
  return named(std::string(parameter.name));
}

Value Machine::construct(const Value& type, Arguments& arguments) {
  Value object = instance(type.heap->definition);
  Value made;
  if (is_module(type.heap->definition)) return object;
  if (const Value* method = method_of(object, "__init__", made)) {
    Value init = *method;
    call_function(init, arguments);
  } else {
    // A dataclass or a plain holder of settings.
    for (const auto& [name, value] : arguments.keywords) object.heap->fields[std::string(name)] = value;
  }
  return object;
}

Value Machine::instance(const Stmt* owner) {
  Value object = object_value(Role::None);
  object.heap->definition = owner;
  return object;
}

bool Machine::in_context(Role role) const {
  for (const Context& context : contexts_)
    if (context.role == role && context.active) return true;
  return false;
}

}  // namespace batchwright::check
