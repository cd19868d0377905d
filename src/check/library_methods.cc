// Methods of values that are not instances of the file's own classes.
#include <cmath>
#include <utility>

#include "check/library.h"
#include "check/roles.h"

namespace batchwright::check {

using Type = Value::Type;

Role Library::role_of(const Value& object) const {
  if (object.is(Type::Object)) return object.heap->role;
  if (object.opaque() && object.name && !object.has_terms()) {
    const Role named = role_of_name(*object.name);
    return named == Role::None && !m.scan_.names_optimizer() && m.scan_.drives(last_part(*object.name))
               ? Role::Engine
               : named;
  }
  return Role::None;
}

Value Library::method(Value& object, std::string_view name, Arguments& arguments) {
  Value out;
  if (object.is(Type::Object) && object.heap->role == Role::Super) {
    if (super_method(name, arguments, out)) return out;
  }
  if ((object.taint & kWindowCount) && is_one_of(name, {"clamp", "clamp_min", "to", "float", "item", "int",
                                                        "cuda", "cpu", "detach", "type", "long", "double"}))
    return object;
  if (is_one_of(name, {"parse_args", "parse_known_args"})) return m.named("args");
  if (object.is(Type::Object) && object.heap->role == Role::Gradient) {
    gradient_method(name, arguments);
    return object;
  }
  if (is_one_of(name, {"parameters", "named_parameters", "trainable_parameters", "get_parameters"})) {
    out = object_value(Role::Parameters);
    if (std::string module = m.identity_of(object); !module.empty())
      out.heap->fields["name"] = m.named(std::move(module));
    return out;
  }
  if (object.is(Type::Object) && object.heap->role == Role::Cell) {
    if (tensor_method(object, name, arguments, out)) return out;
    object = object.held();
  }
  for (Value& value : arguments.positional)
    if (!is_one_of(name, {"append"})) value = value.held();
  if (name == "requires_grad_" && !m.identity_of(object).empty()) {
    const std::string identity = m.identity_of(object);
    std::string_view module = identity;
    if (module.ends_with(kParameter)) module.remove_suffix(kParameter.size());
    m.freeze(module, arguments.positional.empty() ? bool_value(true) : arguments.positional[0]);
    return object;
  }
  const Role role = role_of(object);
  if (training_method(object, role, name, arguments, out)) return out;
  if (role == Role::Accelerator || role == Role::Fabric || name == "accumulate" || name == "no_sync" ||
      name == "no_backward_sync")
    if (accelerate_method(object, name, arguments, out)) return out;
  if (role == Role::Engine || name == "is_gradient_accumulation_boundary" ||
      name == "set_gradient_accumulation_boundary")
    if (engine_method(object, name, arguments, out)) return out;
  if (lightning_method(object, name, arguments, out)) return out;
  if (container_method(object, name, arguments, out)) return out;
  if (object.has_terms() || object.is(Type::Number) ||
      (object.is(Type::Object) && object.heap->role == Role::Cell) || (object.opaque() && !object.name))
    if (tensor_method(object, name, arguments, out)) return out;
  if (report_method(object, name, arguments)) return out;
  if (is_one_of(name, {"save", "save_pretrained", "save_state", "save_checkpoint", "save_model", "evaluate",
                       "validate"})) {
    event(EventKind::Save, m.line_);
    m.trace_.events.back().counter = m.period_counter_;
    return m.symbol_value(arguments.call);
  }
  if (is_one_of(name, {"update_parameters"}) || (role == Role::Ema && is_one_of(name, {"update", "step"}))) {
    event(EventKind::Ema, m.line_);
    return none_value();
  }
  // optimizers.values(): what they are called tells what they are.
  if (is_one_of(name, {"values", "items"}) && object.opaque() && object.name && !object.has_terms() &&
      contains_any(lower(*object.name), {"optim", "sched"}))
    return object;
  if (object.opaque() && object.name && !object.has_terms()) {
    const std::string dotted = *object.name + "." + std::string(name);
    // A method of something open may share its name with a function of a library; only modules are looked up
    // so.
    return call(dotted, arguments);
  }
  if (object.has_terms() && tensor_method(object, name, arguments, out)) return out;
  return m.opaque_call(arguments);
}

void Library::write_back(const Expr* call, const Value& value) {
  const Expr* function = call && !call->kids.empty() ? call->kids[0] : nullptr;
  if (function && function->kind == ExprKind::Attribute) m.assign(function->kids[0], value, nullptr);
}

bool Library::tensor_method(Value& object, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  if (object.is(Type::Object)) {  // a cell
    auto& held = object.heap->items[0];
    if (is_one_of(name, {"assign_add", "add_"}) && !given.empty())
      held = m.binary("+", held, given[0], arguments.call);
    else if (is_one_of(name, {"assign", "copy_"}) && !given.empty())
      held = given[0].held();
    else if (name == "zero_")
      held = number_value(0);
    else if (is_one_of(name, {"div_", "mul_"}) && !given.empty())
      held = m.binary(name == "div_" ? "/" : "*", held, given[0], arguments.call);
    else
      return false;
    out = object;
    return true;
  }
  if (is_one_of(name, {"mean",       "item",    "detach", "float",          "double",           "half",
                       "to",         "cuda",    "cpu",    "clone",          "squeeze",          "unsqueeze",
                       "view",       "reshape", "numpy",  "requires_grad_", "bfloat16",         "type",
                       "contiguous", "detach_", "tolist", "flatten",        "repeat",           "expand",
                       "nanmean",    "astype",  "result", "get_loss",       "block_until_ready"})) {
    out = object;
    if (is_one_of(name, {"detach", "item", "detach_", "numpy", "tolist"})) out.cut = true;
    if (object.opaque() && !object.has_terms()) out = Value{};
    if (object.opaque() && !object.has_terms() && is_one_of(name, {"mean", "item"}))
      out = m.symbol_value(arguments.call);
    return true;
  }
  if (name == "sum") {
    out = object.has_terms() || object.is(Type::Number) ? object : m.symbol_value(arguments.call);
    if (out.has_terms())
      for (const Term& term : *out.terms) {
        Symbol& symbol = m.trace_.symbols[static_cast<std::size_t>(term.symbol)];
        if (!symbol.count) symbol.summed = true;
      }
    return true;
  }
  const auto arithmetic = [&](std::string_view op) {
    if (given.empty()) return false;
    Value factor = given[0];
    if (arguments.call && arguments.call->kids.size() > 1 &&
        arguments.call->kids[1]->kind == ExprKind::Number && (op == "/" || op == "*"))
      if (const double n = m.window_literal(arguments.call->kids[1]->number); n > 0)
        factor = number_value(n, kAccumulation);
    out = m.binary(op, object, factor, arguments.call);
    if (name.ends_with('_')) write_back(arguments.call, out);
    return true;
  };
  if (is_one_of(name, {"div", "div_", "true_divide", "divide", "true_divide_"})) return arithmetic("/");
  if (is_one_of(name, {"mul", "mul_", "multiply"})) return arithmetic("*");
  if (is_one_of(name, {"add", "add_"})) return arithmetic("+");
  if (name == "zero_") {
    out = number_value(0);
    write_back(arguments.call, out);
    return true;
  }
  if (is_one_of(name, {"chunk", "split", "tensor_split"}) && !object.has_terms()) {
    const auto number = given.empty() ? std::nullopt : m.as_number(given[0]);
    const double size = object.number > 0 ? object.number : 8;
    const double count = !number           ? m.world_.accumulation
                         : name == "split" ? std::ceil(size / number->number)
                                           : number->number;
    out = chunks(count >= 2 ? count : m.world_.accumulation, 2);
    return true;
  }
  if (is_one_of(name, {"size", "numel", "__len__"})) {
    out = object.has_terms() ? m.symbol_value(arguments.call) : number_value(8, kBatchSize);
    if (out.has_terms()) m.trace_.symbols.back().count = true;
    return true;
  }
  return false;
}

bool Library::gradient_method(std::string_view name, Arguments& arguments) {
  auto& given = arguments.positional;
  if (is_one_of(name, {"zero_", "fill_"})) zero(-1, m.line_);
  if (given.empty()) return true;
  Value factor = given[0];
  if (arguments.call && arguments.call->kids.size() > 1 && arguments.call->kids[1]->kind == ExprKind::Number)
    if (const double n = m.window_literal(arguments.call->kids[1]->number); n > 0)
      factor = number_value(n, kAccumulation);
  if (is_one_of(name, {"div_", "true_divide_"})) scale_gradients(factor, "/", m.line_);
  if (is_one_of(name, {"mul_"})) scale_gradients(factor, "*", m.line_);
  return true;
}

bool Library::container_method(Value& object, std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  if (object.is(Type::String)) {
    out = object;
    if (name == "format") out.heap = sequence_value(given).heap;
    return true;
  }
  if (object.is(Type::Sequence)) {
    auto& items = object.heap->items;
    if (name == "append" && !given.empty()) {
      if (std::exchange(object.heap->filled_elsewhere, false)) {
        items.clear();
        object.heap->uniform = false;
      }
      if (items.size() < 256) items.push_back(given[0]);
    } else if (name == "extend" && !given.empty() && given[0].is(Type::Sequence)) {
      if (items.size() < 256)
        items.insert(items.end(), given[0].heap->items.begin(), given[0].heap->items.end());
    } else if (name == "clear") {
      items.clear();
    } else if (is_one_of(name, {"pop", "popleft"})) {
      if (!items.empty()) {
        out = items.back();
        items.pop_back();
      }
    } else if (name == "mean") {
      out = mean(object, arguments.call);
    } else if (name == "sum") {
      out = sum(object, arguments.call);
    } else {
      out = object;
    }
    return true;
  }
  if (object.is(Type::Dict)) {
    auto& fields = object.heap->fields;
    if (is_one_of(name, {"get", "pop", "setdefault"}) && !given.empty() && given[0].is(Type::String)) {
      const auto found = fields.find(*given[0].name);
      if (found != fields.end()) out = found->second;
    } else if (name == "update" && !given.empty() && given[0].is(Type::Dict)) {
      for (const auto& [key, value] : given[0].heap->fields) fields[key] = value;
    } else if (is_one_of(name, {"items", "values"})) {
      std::vector<Value> rows;
      for (const auto& [key, value] : fields) {
        if (key == kRest) continue;
        Value text = m.named(key);
        text.type = Type::String;
        rows.push_back(name == "values" ? value : sequence_value({text, value}));
      }
      out = sequence_value(std::move(rows));
    }
    return true;
  }
  if (object.is(Type::Iterator)) {
    out = object;
    return true;
  }
  return false;
}

// Where people show a loss: printing, progress bars, trackers, running averages.
bool Library::report_method(Value& object, std::string_view name, Arguments& arguments) {
  const bool shows =
      is_one_of(name, {"info", "debug", "log", "add_scalar", "add_scalars", "set_postfix", "set_description",
                       "set_postfix_str", "write", "print", "log_metrics", "log_metric", "log_dict", "add",
                       "warning", "log_scalar", "scalar", "log_loss", "track"}) ||
      (name == "update" && !object.has_terms()) ||
      (is_one_of(name, {"register", "record", "append", "put", "observe", "store"}) && object.opaque() &&
       object.name && !object.has_terms() &&
       contains_any(lower(last_part(*object.name)),
                    {"report", "meter", "track", "logger", "record", "monitor", "writer", "metric"}));
  if (!shows) return false;
  for (const Value& value : arguments.positional) report(value, m.line_);
  for (const auto& [key, value] : arguments.keywords) report(value, m.line_);
  return true;
}

}  // namespace batchwright::check
