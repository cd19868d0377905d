#include <algorithm>
#include <cmath>

#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

// What a class body assigns to a name.
const Expr* class_attribute(const Stmt* type, std::string_view name) {
  for (const Stmt* statement : type->body)
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 && statement->value &&
        statement->targets[0]->text == name)
      return statement->value;
  return nullptr;
}

bool is_tensor_view(std::string_view name) {
  return name == "data" || name == "loss" || name == "logits" || name == "T" || name == "real";
}

}  // namespace

const std::string* Machine::intern(std::string text) { return &*names_.insert(std::move(text)).first; }

Value Machine::named(std::string name) {
  Value value;
  value.name = intern(std::move(name));
  return value;
}

bool Machine::spend() {
  if (budget_ > 0) {
    --budget_;
    ++spent_;
    return true;
  }
  trace_.budget_spent = true;
  return false;
}

Value Machine::evaluate(const Expr* expression) {
  if (!expression || !spend()) return {};
  line_ = expression->line;
  switch (expression->kind) {
    case ExprKind::Name:
      return evaluate_name(expression);
    case ExprKind::Number:
      return number_value(expression->number);
    case ExprKind::String: {
      Value text = named(std::string(expression->text.substr(0, 120)));
      text.type = Type::String;
      // What an f-string shows is reported with it.
      std::vector<Value> shown;
      for (const Expr* kid : expression->kids) shown.push_back(evaluate(kid));
      if (!shown.empty()) text.heap = sequence_value(std::move(shown)).heap;
      return text;
    }
    case ExprKind::Constant:
      if (expression->text == "None") return none_value();
      if (expression->text == "True" || expression->text == "False")
        return bool_value(expression->text == "True");
      return {};
    case ExprKind::Attribute:
      return evaluate_attribute(expression);
    case ExprKind::Call:
      return evaluate_call(expression);
    case ExprKind::Subscript:
      return evaluate_subscript(expression);
    case ExprKind::Unary:
      return evaluate_unary(expression);
    case ExprKind::Binary:
      if (expression->text == "and" || expression->text == "or") return evaluate_logic(expression);
      {
        const Value left = evaluate(expression->kids[0]);
        return binary(expression->text, left, evaluate(expression->kids[1]), expression);
      }
    case ExprKind::Compare:
      return evaluate_compare(expression);
    case ExprKind::Conditional: {
      const auto effects = [&](const Expr* side) {
        const bool context = contains_any(side->source, {"no_sync", "no_backward_sync"});
        const bool scales =
            side->kind == ExprKind::Number || contains_any(lower(side->source), {"/", "*", "loss", "accum"});
        return scan_.effects(side) | kChooses | (scales ? kDoesDivide : 0u) | (context ? kEntersContext : 0u);
      };
      const bool first =
          decide(expression->kids[1], effects(expression->kids[0]), effects(expression->kids[2]));
      return evaluate(expression->kids[first ? 0 : 2]);
    }
    case ExprKind::Tuple:
    case ExprKind::List: {
      std::vector<Value> items;
      for (const Expr* kid : expression->kids) {
        Value item =
            evaluate(kid->kind == ExprKind::Starred ? kid->kids.empty() ? nullptr : kid->kids[0] : kid);
        if (kid->kind == ExprKind::Starred && item.is(Type::Sequence))
          items.insert(items.end(), item.heap->items.begin(), item.heap->items.end());
        else
          items.push_back(std::move(item));
      }
      return sequence_value(std::move(items));
    }
    case ExprKind::Dict: {
      Value dict;
      dict.type = Type::Dict;
      dict.heap = std::make_shared<Heap>();
      for (std::size_t i = 0; i + 1 < expression->kids.size(); i += 2) {
        const Value key = evaluate(expression->kids[i]);
        Value item = evaluate(expression->kids[i + 1]);
        if (!expression->kids[i] && item.is(Type::Dict))
          for (const auto& [name, inner] : item.heap->fields) dict.heap->fields[name] = inner;
        else if (key.is(Type::String))
          tag_by_name(*key.name, item, expression->kids[i + 1]),
              dict.heap->fields[*key.name] = std::move(item);
        else
          dict.heap->fields["?" + std::to_string(i)] = std::move(item);
      }
      return dict;
    }
    case ExprKind::Comprehension:
      return evaluate_comprehension(expression);
    case ExprKind::Lambda: {
      Value lambda;
      lambda.type = Type::Lambda;
      lambda.heap = std::make_shared<Heap>();
      lambda.heap->lambda = expression;
      lambda.heap->scope = scope_;
      return lambda;
    }
    case ExprKind::Named: {
      Value value = evaluate(expression->kids[1]);
      assign(expression->kids[0], value, expression->kids[1]);
      return value;
    }
    case ExprKind::Yield: {
      Value value = expression->kids.empty() ? none_value() : evaluate(expression->kids[0]);
      return yield(std::move(value));
    }
    case ExprKind::Starred:
      return evaluate(expression->kids.empty() ? nullptr : expression->kids[0]);
    default:
      for (const Expr* kid : expression->kids) evaluate(kid);
      return {};
  }
}

Value Machine::evaluate_name(const Expr* expression) {
  if (Value* found = scope_->find(expression->text)) return *found;
  return named(std::string(expression->text));
}

Value Machine::evaluate_attribute(const Expr* expression) {
  return attribute_of(evaluate(expression->kids[0]).held(), expression->text, expression);
}

Value Machine::attribute_of(const Value& object, std::string_view name, const Expr* expression) {
  if (name == "grad" && !object.is(Type::Object)) return object_value(Role::Gradient);
  if (name == "sync_gradients") return bool_value(accelerate_.sync);
  if (name == "gradient_accumulation_steps" && object.is(Type::Object) &&
      object.heap->role == Role::Accelerator)
    return number_value(accelerate_.steps, kAccumulation);
  if (name == "require_backward_grad_sync") return bool_value(sync_required_);
  if (name == "is_last_batch") return bool_value(last_batch_);
  if (name == "num_training_batches" || name == "estimated_stepping_batches") {
    const double windows =
        lightning_divides_ ? std::ceil(world_.epoch_length() / world_.accumulation) : world_.epoch_length();
    return number_value(name == "num_training_batches" ? world_.epoch_length() : windows * 2, kLength);
  }
  if (object.is(Type::Object)) {
    if (object.heap->role == Role::Gradient) return object;  // p.grad.data
    const auto found = object.heap->fields.find(name);
    if (found != object.heap->fields.end()) return found->second;
    if (object.heap->role == Role::None || object.heap->role == Role::Trainer) {
      Value made;
      if (const Value* method = method_of(object, name, made)) return *method;
      if (object.heap->definition)
        if (const Expr* written = class_attribute(object.heap->definition, name))
          return class_value(name, written);
      if (Value value = set_elsewhere(object, name); !value.opaque()) {
        object.heap->fields[std::string(name)] = value;
        return value;
      }
      std::string path("self.");
      path += name;
      // A count that a base class of another file starts.
      if (object.heap->definition && scan_.is_counter(path)) {
        const Value start = number_value(0, kIndex);
        object.heap->fields[std::string(name)] = start;
        return start;
      }
      return named(std::move(path));
    }
    Value inner = named("." + std::string(name));
    if (object.heap->role == Role::Accelerator && name == "num_processes")
      return number_value(trace_.world, kWorld);
    return inner;
  }
  if (object.is(Type::Dict)) {
    const auto found = object.heap->fields.find(name);
    if (found != object.heap->fields.end()) return found->second;
    return {};
  }
  if (object.is(Type::Class)) {
    const auto found = object.heap->fields.find(name);
    if (found != object.heap->fields.end()) return found->second;
    if (const Expr* written = class_attribute(object.heap->definition, name))
      return class_value(name, written);
    if (const Stmt* method = scan_.find_method(object.heap->definition, name)) {
      Value function;
      function.type = Type::Function;
      function.heap = std::make_shared<Heap>();
      function.heap->definition = method;
      function.heap->scope = globals_;
      return function;
    }
    return named(std::string(object.heap->definition->text) + "." + std::string(name));
  }
  if (object.has_terms()) {
    if (names_accumulation(name) || name == "no_sync") return named(std::string(name));
    if (contains_any(name, {"aux", "router", "balanc", "z_loss"})) return symbol_value(expression);
    if (is_tensor_view(name) || contains_any(name, {"loss"})) {
      Value same = object;
      return same;
    }
    return {};
  }
  if (object.opaque() && object.name) {
    std::string path = *object.name + "." + std::string(name);
    const auto set = paths_.find(path);
    if (set != paths_.end()) return set->second;
    return named(std::move(path));
  }
  return {};
}

// A class attribute may be written with itself: then it stays open.
Value Machine::class_value(std::string_view name, const Expr* written) {
  if (depth_ > 12) return {};
  ++depth_;
  Value value = evaluate(written);
  --depth_;
  tag_by_name(name, value, written);
  return value;
}

// What a method other than __init__ sets an attribute to, where its class is run by a framework that calls
// compile(), build() or setup() first.
Value Machine::set_elsewhere(const Value& object, std::string_view name) {
  const Stmt* type = object.heap->definition;
  if (!type || depth_ > 12) return {};
  for (const Stmt* method : type->body) {
    if (method->kind != StmtKind::Function || method->parameters.empty() ||
        !contains_any(lower(method->text), {"compile", "build", "setup", "make", "init", "prepare", "reset",
                                            "configure", "on_train_start", "on_fit_start", "create"}) ||
        method->text == "__init__")
      continue;
    for (const Stmt* statement : method->body) {
      if (statement->kind != StmtKind::Assign || !statement->value || statement->targets.size() != 1)
        continue;
      const Expr* target = statement->targets[0];
      if (target->kind != ExprKind::Attribute || target->text != name ||
          target->kids[0]->source != method->parameters[0].name)
        continue;
      const auto caller = scope_;
      scope_ = new_scope(globals_);
      scope_->set(method->parameters[0].name, object);
      ++depth_;
      Value value = evaluate(statement->value);
      --depth_;
      scope_ = caller;
      tag_by_name(name, value, statement->value);
      return value;
    }
  }
  return {};
}

Value Machine::evaluate_subscript(const Expr* expression) {
  if (expression->kids.empty()) return {};
  const Value object = evaluate(expression->kids[0]);
  const Expr* key = expression->kids.size() > 1 ? expression->kids[1] : nullptr;
  if (key && key->kind == ExprKind::Slice) {
    const auto bound = [&](std::size_t i) {
      return key->kids[i] ? as_number(evaluate(key->kids[i])) : std::nullopt;
    };
    const auto low = bound(0), high = bound(1);
    if (object.is(Type::Sequence) && !object.heap->uniform) {
      const auto size = static_cast<double>(object.heap->items.size());
      const double from = low ? std::clamp(low->number < 0 ? low->number + size : low->number, 0.0, size) : 0;
      const double to =
          high ? std::clamp(high->number < 0 ? high->number + size : high->number, from, size) : size;
      return sequence_value({object.heap->items.begin() + static_cast<long>(from),
                             object.heap->items.begin() + static_cast<long>(to)});
    }
    Value part = object.has_terms() ? object : Value{};
    if (low && high && high->number > low->number) part.number = high->number - low->number;
    return part;
  }
  for (std::size_t i = 2; i < expression->kids.size(); ++i) evaluate(expression->kids[i]);
  const Value index = evaluate(key);
  if (expression->kids[0]->text == "shape" && !object.is(Type::Number) && index.is(Type::Number) &&
      index.number == 0)
    return number_value(8, kBatchSize);  // as x.size(0)
  if (object.is(Type::Sequence)) {
    const auto& items = object.heap->items;
    if (items.empty()) return {};
    if (object.heap->uniform) return items[0];
    if (index.is(Type::Number)) {
      const double at = index.number < 0 ? index.number + static_cast<double>(items.size()) : index.number;
      if (at >= 0 && at < static_cast<double>(items.size())) return items[static_cast<std::size_t>(at)];
      return {};
    }
    return items[0];
  }
  if (object.is(Type::Dict) || (object.is(Type::Object) && index.is(Type::String))) {
    if (index.is(Type::String)) {
      const auto found = object.heap->fields.find(*index.name);
      if (found != object.heap->fields.end()) return found->second;
      const auto rest = object.heap->fields.find(kRest);
      if (rest == object.heap->fields.end()) return named(*index.name);
      return contains_any(*index.name, {"loss", "nll", "ce"}) ? rest->second : Value{};
    } else if (const auto any = object.heap->fields.find("?"); any != object.heap->fields.end()) {
      return any->second;
    }
    return {};
  }
  if (object.has_terms()) {
    // out[0], out["loss"]: the loss of a model's output; other parts are data.
    if (index.is(Type::String) && !contains_any(*index.name, {"loss", "nll", "ce"}) &&
        !contains_any(lower(expression->kids[0]->source), {"loss"}) &&
        !is_one_of(*index.name, {"total", "objective"}))
      return {};
    return object;
  }
  if (object.opaque() && object.name) {
    const std::string path = *object.name + (index.is(Type::String) ? "." + *index.name : std::string("[]"));
    const auto set = paths_.find(path);
    if (set != paths_.end()) return set->second;
    return named(path);
  }
  return {};
}

}  // namespace batchwright::check
