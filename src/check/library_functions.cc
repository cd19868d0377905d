// Functions and classes that are not in the file.
#include <cmath>
#include <limits>

#include "check/library.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

Value iterator(IteratorKind kind, double count) {
  Value made;
  made.type = Type::Iterator;
  made.heap = std::make_shared<Heap>();
  made.heap->kind = kind;
  made.heap->count = count;
  return made;
}

}  // namespace

Value Library::call(const std::string& dotted, Arguments& arguments) {
  const auto name = last_part(dotted);
  Value out;
  if (const Value* loss = arguments.keyword("compute_loss_func");
      loss && arguments.call && (loss->is(Type::Function) || loss->is(Type::Lambda)))
    m.run_loss_function(*loss, arguments.call);
  if (builtin(name, arguments, out) || iteration(name, arguments, out) ||
      functional(dotted, name, arguments, out) || tensor_function(dotted, name, arguments, out) ||
      constructor(dotted, name, arguments, out))
    return out;
  const std::string word = lower(name);
  if (contains_any(word, {"ema"}) && contains_any(word, {"update", "step"}) &&
      !contains_any(word, {"schema", "remain", "semantic"}))
    event(EventKind::Ema, m.line_);
  return m.opaque_call(arguments, dotted);
}

bool Library::builtin(std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  if (name == "len" && given.size() == 1) {
    out = length(given[0], arguments.call);
    return true;
  }
  if (is_one_of(name, {"print", "pprint", "tqdm.write"})) {
    for (const Value& value : given) report(value, m.line_);
    return true;
  }
  if (is_one_of(name, {"int", "float", "round", "abs", "ceil", "floor", "bool", "trunc"}) &&
      given.size() >= 1) {
    if (const auto number = m.as_number(given[0])) {
      out = *number;
      if (is_one_of(name, {"int", "trunc"})) out.number = std::trunc(out.number);
      if (name == "ceil") out.number = std::ceil(out.number);
      if (name == "floor") out.number = std::floor(out.number);
      if (name == "round") out.number = std::round(out.number);
      if (name == "abs") out.number = std::fabs(out.number);
    } else if (given[0].has_terms()) {
      out = given[0];
    } else if (given[0].opaque()) {
      out = given[0];
    }
    return true;
  }
  if (is_one_of(name, {"min", "max"}) && given.size() >= 2) {
    std::optional<double> best;
    std::uint16_t taint = 0;
    for (const Value& value : given) {
      const auto number = m.as_number(value);
      if (!number) continue;
      best = !best           ? number->number
             : name == "min" ? std::min(*best, number->number)
                             : std::max(*best, number->number);
      taint |= number->taint;
    }
    if (best) out = number_value(*best, taint);
    return true;
  }
  if (name == "sum" && given.size() >= 1) {
    out = sum(given[0], arguments.call);
    return true;
  }
  if (name == "getattr" && given.size() >= 2 && given[1].is(Type::String)) {
    out = m.attribute_of(given[0], *given[1].name, arguments.call);
    const bool unknown = out.opaque() && !out.has_terms() && !m.as_number(out);
    if (unknown && given.size() > 2 && given[2].is(Type::Number) && !given[2].is_bool) out = given[2];
    return true;
  }
  if (name == "super") {
    out = object_value(Role::Super);
    return true;
  }
  if (is_one_of(name, {"isinstance", "hasattr", "callable", "any", "all", "id", "type", "issubclass"})) {
    out = Value{};
    return true;
  }
  if (name == "no_sync" && given.empty()) {  // context = model.no_sync if ... else nullcontext
    out = object_value(Role::NoSync);
    return true;
  }
  if (name == "nullcontext" || name == "suppress") {
    out = object_value(Role::OtherContext);
    return true;
  }
  if (is_one_of(name, {"str", "repr", "format"}) && !given.empty()) {
    out = given[0];
    return true;
  }
  if (name == "partial" && !given.empty()) {
    out = given[0];
    return true;
  }
  return false;
}

Value Library::chunks(double count, double size) {
  Value item;
  item.number = size;
  Value made =
      sequence_value(std::vector<Value>(static_cast<std::size_t>(std::clamp(count, 1.0, 64.0)), item));
  return made;
}

bool Library::iteration(std::string_view name, Arguments& arguments, Value& out) {
  auto& given = arguments.positional;
  if (is_one_of(name, {"range", "trange", "arange"}) && !given.empty()) {
    const auto number = [&](std::size_t i) -> std::optional<Value> {
      if (i >= given.size()) return std::nullopt;
      const Expr* written =
          arguments.call && i + 1 < arguments.call->kids.size() ? arguments.call->kids[i + 1] : nullptr;
      if (written && written->kind == ExprKind::Number && m.window_literal(written->number) > 0)
        return number_value(m.window_literal(written->number), kAccumulation);
      const auto known = m.as_number(given[i]);
      // range(args.epoch), range(1, args.epoch + 1): a name that elsewhere tells where one is tells here how
      // far to go.
      const bool end = i == 1 || given.size() == 1;
      if (end && known && known->number <= 1 && m.holds_open_epoch(written)) return std::nullopt;
      return known;
    };
    const auto first = number(0), second = number(1), third = number(2);
    out = iterator(IteratorKind::Range, -1);
    const auto stop = given.size() > 1 ? second : first;
    out.heap->start = given.size() > 1 && first ? first->number : 0;
    out.heap->step = third && third->number != 0 ? third->number : 1;
    if (stop && (given.size() < 2 || first)) {
      out.heap->count = std::max(0.0, std::ceil((stop->number - out.heap->start) / out.heap->step));
      out.heap->taint = stop->taint;
      if (given.size() > 1 && first) out.heap->taint |= first->taint;
    }
    return true;
  }
  if ((name == "enumerate" || name.ends_with("_enumerate")) && !given.empty()) {
    out = iterator(IteratorKind::Enumerate, -1);
    Value inner = given[0];
    if (inner.opaque() && !inner.name && arguments.call && arguments.call->kids.size() > 1) inner = given[0];
    out.heap->items.push_back(m.iterator_of(inner));
    const Value* start = name == "enumerate" ? arguments.get(1, "start") : arguments.keyword("start");
    if (start)
      if (const auto number = m.as_number(*start)) out.heap->start = number->number;
    return true;
  }
  if (name == "zip" && !given.empty()) {
    out = iterator(IteratorKind::Zip, -1);
    for (const Value& value : given) out.heap->items.push_back(m.iterator_of(value));
    return true;
  }
  if (is_one_of(name,
                {"tqdm", "track", "reversed", "sorted", "list", "tuple", "tqdm_notebook", "as_completed",
                 "prefetch", "progress_bar", "set", "auto", "skip_first_batches", "asarray", "log_every"}) &&
      !given.empty()) {
    out = given[0];
    if (out.is(Type::Iterator) && is_one_of(name, {"list", "tuple", "sorted"})) {
      Heap& heap = *out.heap;
      std::vector<Value> items;
      while (items.size() < 64 &&
             (heap.count >= 0 || heap.kind == IteratorKind::Zip || heap.kind == IteratorKind::Slice)) {
        auto item = m.next_item(heap);
        if (!item) break;
        items.push_back(std::move(*item));
      }
      out = sequence_value(std::move(items));
    }
    return true;
  }
  if (is_one_of(name, {"list", "tuple", "set", "dict", "defaultdict", "OrderedDict", "deque", "Counter"}) &&
      given.empty()) {
    out = sequence_value({});
    if (is_one_of(name, {"dict", "defaultdict", "OrderedDict", "Counter"})) {
      out.type = Type::Dict;
      for (const auto& [key, value] : arguments.keywords) out.heap->fields[std::string(key)] = value;
    }
    return true;
  }
  if (name == "defaultdict" || name == "dict") {
    out = sequence_value({});
    out.type = Type::Dict;
    return true;
  }
  if (name == "iter" && !given.empty()) {
    out = m.iterator_of(given[0]);
    if (out.heap && out.heap->count < 0 && out.heap->kind == IteratorKind::Data && given[0].opaque()) {
      out.heap->count = m.open_length(given[0], arguments.call->source);
      out.heap->taint = kLength;
    }
    return true;
  }
  if (name == "next" && !given.empty()) {
    if (!given[0].is(Type::Iterator)) return true;  // an open stream: data without end
    auto item = m.next_item(*given[0].heap);
    if (item) {
      out = std::move(*item);
    } else if (given.size() > 1) {
      out = given[1];
    } else if (m.try_depth_ > 0) {
      throw StopIteration{};
    }
    return true;
  }
  if (is_one_of(name, {"cycle", "repeat", "infinite_loader", "inf_loop", "infinite_iterator"})) {
    out = iterator(IteratorKind::Endless, -1);
    return true;
  }
  if (name == "islice" && given.size() >= 2) {
    const auto count = m.as_number(given.size() > 2 ? given[2] : given[1]);
    out = iterator(IteratorKind::Slice, count ? count->number : -1);
    out.heap->items.push_back(m.iterator_of(given[0]));
    if (out.heap->items[0].heap && out.heap->items[0].heap->count < 0 && count) {
      out.heap->items[0].heap->kind = IteratorKind::Endless;
    }
    return true;
  }
  const std::string_view module = arguments.call && !arguments.call->kids.empty() && arguments.call->kids[0]
                                      ? arguments.call->kids[0]->source
                                      : std::string_view{};
  if (name == "split" && given.size() >= 2 && module.starts_with("torch")) {  // by size; elsewhere by number
    const auto size = m.as_number(given[1]);
    out = chunks(size && size->number > 0 ? std::ceil(8 / size->number) : m.world_.accumulation, 2);
    return true;
  }
  if ((is_one_of(name, {"chunk", "tensor_split", "array_split"}) ||
       (name == "split" && module.find("split") != 0 && module.size() < 24)) &&
      given.size() >= 2) {
    const auto count = m.as_number(given[1]);
    out = chunks(count ? count->number : m.world_.accumulation, 2);
    return true;
  }
  if (is_one_of(name, {"batched", "chunked", "grouper", "partition_all"}) && given.size() >= 2) {
    const auto size = m.as_number(given[1]);
    const double n = size && size->number >= 1 ? std::min(size->number, 32.0) : m.world_.accumulation;
    std::vector<Value> groups;
    for (double left = m.world_.epoch_length(); left > 0; left -= n)
      groups.push_back(sequence_value(std::vector<Value>(static_cast<std::size_t>(std::min(n, left)))));
    out = sequence_value(std::move(groups));
    return true;
  }
  return false;
}

bool Library::tensor_function(std::string_view dotted, std::string_view name, Arguments& arguments,
                              Value& out) {
  auto& given = arguments.positional;
  if (is_one_of(name, {"zeros", "zeros_like", "ones_like", "empty_like", "zeros_tensor"})) {
    out = cell_value(number_value(0));
    return true;
  }
  if (is_one_of(name, {"tensor", "as_tensor", "array", "Variable", "float32", "constant", "Tensor",
                       "FloatTensor", "asarray"}) &&
      !given.empty()) {
    if (given[0].is(Type::Number) || given[0].has_terms() || given[0].is(Type::Sequence) ||
        (given[0].taint & kWindowCount)) {
      out = given[0];
      if (name == "Variable" && (dotted.starts_with("tf.") || dotted.starts_with("tensorflow"))) {
        out = cell_value(given[0].held());
      }
      return true;
    }
    return false;
  }
  if (is_one_of(name, {"stack", "cat", "concat", "hstack", "vstack"}) && !given.empty() &&
      given[0].is(Type::Sequence)) {
    out = given[0];
    return true;
  }
  if (is_one_of(name, {"mean", "average", "fmean", "reduce_mean", "nanmean"}) && !given.empty()) {
    out = mean(given[0], arguments.call);
    return true;
  }
  if (is_one_of(name, {"reduce_sum", "nansum", "add_n"}) && !given.empty()) {
    out = sum(given[0], arguments.call);
    return true;
  }
  if (is_one_of(name, {"div", "true_divide", "divide", "mul", "multiply"}) && given.size() >= 2) {
    out = m.binary(name.starts_with("m") ? "*" : "/", given[0], given[1], arguments.call);
    return true;
  }
  if (name == "add" && given.size() >= 2) {
    out = m.binary("+", given[0], given[1], arguments.call);
    return true;
  }
  if (contains_any(name, {"clip_grad_norm", "clip_grad_value", "clip_gradients", "clip_grads"})) {
    clip(m.line_, false);
    return true;
  }
  if (contains_any(name, {"scale_grads", "scale_gradients", "scale_gradient"}) && given.size() >= 2) {
    scale_gradients(given[1], "*", m.line_);
    return true;
  }
  if (contains_any(name, {"_foreach_div_", "_foreach_mul_"}) && given.size() >= 2) {
    scale_gradients(given[1], name == "_foreach_div_" ? "/" : "*", m.line_);
    return true;
  }
  if (name == "backward" && !given.empty()) {
    Value flat = given[0];
    if (flat.is(Type::Sequence)) flat = sum(flat, arguments.call);
    if (given.size() > 1 && flat.has_terms()) flat = weighted_elsewhere(flat);
    backward(flat, m.line_);
    return true;
  }
  if (name == "grad" && dotted.find("autograd") != std::string_view::npos && !given.empty()) {
    Value gradient = m.with_terms(note_gradient(given[0], arguments.call));
    out = sequence_value({gradient}, true);
    return true;
  }
  if (is_one_of(name, {"scale_loss"}) && !given.empty()) {  // apex: unscales when the context ends
    out = given[0];
    return true;
  }
  if (name == "all_reduce" && arguments.call && arguments.call->kids.size() > 1 && !given.empty() &&
      (given[0].has_terms() || given[0].opaque() || given[0].is(Type::Number)) &&
      !contains_any(arguments.call->source, {"AVG", "MAX", "MIN"})) {
    const bool known = given[0].has_terms() || given[0].is(Type::Number);
    Value reduced = known ? given[0] : m.symbol_value(arguments.call->kids[1]);
    if (reduced.is(Type::Number)) reduced.number *= m.trace_.world;
    reduced.taint |= kWorld;  // a sum over all processes
    m.assign(arguments.call->kids[1], reduced, nullptr);
    return true;
  }
  if (is_one_of(name, {"gather", "reduce", "all_gather", "reduce_tensor", "reduce_value", "reduce_loss",
                       "all_reduce_mean", "to_python_float", "gather_object"}) &&
      !given.empty()) {
    out = given[0];
    return given[0].has_terms();
  }
  if (is_one_of(name,
                {"device_count", "get_world_size", "process_count", "world_size", "local_device_count"})) {
    out = name == "device_count" || name == "local_device_count" ? number_value(2, kLocalWorld)
                                                                 : number_value(2, kWorld);
    return true;
  }
  if (is_one_of(name, {"save", "save_checkpoint", "save_model", "save_state"})) {
    event(EventKind::Save, m.line_);
    m.trace_.events.back().counter = m.period_counter_;
    return true;
  }
  if (is_one_of(name, {"info", "debug", "log", "log_metrics", "log_metric"})) {
    for (const Value& value : given) report(value, m.line_);
    for (const auto& [key, value] : arguments.keywords) report(value, m.line_);
    return name != "log" || dotted.find("log.") == std::string_view::npos || true;
  }
  if (name == "where" || name == "no_grad" || name == "enable_grad" || name == "autocast" ||
      name == "inference_mode" || name == "set_grad_enabled") {
    if (name != "where") {
      out = object_value(is_one_of(name, {"no_grad", "inference_mode"}) ? Role::NoGrad : Role::OtherContext);
      return true;
    }
  }
  return false;
}

}  // namespace batchwright::check
