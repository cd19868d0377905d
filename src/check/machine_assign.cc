// Assignments, and what the name of a variable says about its value.
#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {

using Type = Value::Type;

// N computed from an effective batch has to divide by every process that takes part.
void Machine::note_effective_batch(const Value& steps) {
  if (!(steps.taint & kGlobalBatch) || (steps.taint & kAccumulation)) return;
  const bool distributed = scan_.mentions("init_process_group") ||
                           scan_.mentions("DistributedDataParallel") || scan_.mentions("DDP(") ||
                           scan_.mentions("DistributedSampler") || scan_.mentions("WORLD_SIZE") ||
                           scan_.mentions("get_world_size");
  const bool nodes = scan_.mentions("nnodes") || scan_.mentions("num_nodes") || scan_.mentions("NNODES") ||
                     scan_.mentions("WORLD_SIZE") || scan_.mentions("get_world_size") ||
                     scan_.mentions("n_nodes") || scan_.mentions("node_rank");
  const bool none = !(steps.taint & (kWorld | kLocalWorld)) && distributed;
  const bool local_only = (steps.taint & kLocalWorld) && !(steps.taint & kWorld) && nodes;
  if (none || local_only) trace_.effective_batch_line = line_;
}

// What a name says about a value that was computed from open parts.
void Machine::tag_by_name(std::string_view name, Value& value, const Expr* source) {
  const bool window = names_accumulation(name) || scan_.is_window_name(name);
  if (value.is(Type::Number) && source && source->kind == ExprKind::Number && !window)
    if (const auto role = guess_number(name))
      value.taint |= role->taint & (kWorld | kLocalWorld | kBatchSize | kGlobalBatch);
  if (window && value.is(Type::Number) && !value.is_bool) {
    note_effective_batch(value);
    const bool literal = source && source->kind == ExprKind::Number;
    if (value.taint & kIndex) return;
    // N = 1 is accumulation switched off, and a large N would only make the simulation long.
    if (literal && value.number >= 1) value.number = world_.accumulation;
    if (value.taint == kBatchSize) value = number_value(world_.accumulation);  // x.shape[0] of stacked ones
    if (value.number == 0 && literal) return;
    value.taint |= kAccumulation;
    if (!literal && value.number < 2) value.number = world_.accumulation;
    if (value.number > 32) value.number = world_.accumulation;
    return;
  }
  if (window && value.opaque() && !value.has_terms()) {
    value = number_value(world_.accumulation, kAccumulation);
    return;
  }
  if (window && value.has_terms() && value.terms->size() == 1 && value.terms->front().window == 1) {
    value = number_value(world_.accumulation, kAccumulation);
    return;
  }
  // Whatever it is computed from, it is what part of the window a micro-batch is.
  if (names_share(name) && (value.has_terms() || (value.is(Type::Number) && value.taint != 0))) {
    value = named("fraction");
    return;
  }
  // What another file's code returned and this one steps: an optimizer, a scheduler or a scaler, as its name
  // and its use say.
  const bool fresh = value.has_terms() && value.terms->size() == 1 && value.terms->front().window == 1 &&
                     !value.terms->front().scaled;
  if ((fresh || (value.opaque() && !value.name && !value.has_terms())) && scan_.steps(name)) {
    value = named(std::string(name));
    return;
  }
  const std::string word = lower(name);
  // epochs = int(settings.get("epochs", 1)): a number, whatever was called for it.
  if (value.has_terms() && value.terms->size() == 1 && word.find("epoch") != std::string::npos)
    if (const auto usual = guess_number(name); usual && usual->taint == 0) value = *usual;
  if (value.is(Type::Number) && value.number > 2 && !(value.taint & kIndex) &&
      has_part(word, {"epochs", "num_epoch", "n_epoch", "max_epoch"}))
    value.number = 2;
  if (value.has_terms() && names_count(name) && !contains_any(word, {"loss"})) {
    for (const Term& term : *value.terms) trace_.symbols[static_cast<std::size_t>(term.symbol)].count = true;
    if (names_window_count(name)) value.taint |= kWindowCount;
  }
}

void Machine::assign(const Expr* target, Value value, const Expr* source) {
  if (!target) return;
  switch (target->kind) {
    case ExprKind::Name:
      tag_by_name(target->text, value, source);
      scope_->set(target->text, std::move(value));
      return;
    case ExprKind::Attribute:
      assign_attribute(target, std::move(value));
      return;
    case ExprKind::Subscript:
      assign_subscript(target, std::move(value));
      return;
    case ExprKind::Starred:
      if (!target->kids.empty()) assign(target->kids[0], {}, nullptr);
      return;
    case ExprKind::Tuple:
    case ExprKind::List: {
      const bool spread =
          value.is(Type::Sequence) && !value.heap->uniform && value.heap->items.size() == target->kids.size();
      for (std::size_t i = 0; i < target->kids.size(); ++i) {
        if (spread) {
          assign(target->kids[i], value.heap->items[i], nullptr);
        } else if (value.is(Type::Sequence) && value.heap->uniform && !value.heap->items.empty()) {
          assign(target->kids[i], value.heap->items[0], nullptr);
        } else if (value.has_terms() && source &&
                   (source->kind == ExprKind::Call ||
                    contains_any(lower(target->kids[i]->source), {"loss"}))) {
          assign(target->kids[i], part_of(value, target->kids[i]), source);
        } else {
          Value part;
          part.number = value.opaque() ? value.number : 0;
          // Names make up for what an open sequence does not tell: `model, optimizer = setup()`.
          if (!value.has_terms() && target->kids[i]->kind == ExprKind::Name &&
              (value.name || value.is(Type::Object)))
            part = named(std::string(target->kids[i]->text));
          if (value.is(Type::Iterator)) part = {};
          assign(target->kids[i], part, nullptr);
        }
      }
      return;
    }
    default:
      return;
  }
}

void Machine::assign_attribute(const Expr* target, Value value) {
  const Value object = evaluate(target->kids[0]);
  const auto name = target->text;
  if (name == "grad") {
    Library{*this}.set_gradient(value, target->line);
    return;
  }
  if (name == "require_backward_grad_sync") {
    const auto known = truth(value);
    sync_required_ = !known || *known;
    if (known && !*known) {
      trace_.used_no_sync = true;
      trace_.context_line = target->line;
    }
    return;
  }
  if (object.is(Type::Object) && object.heap->role == Role::Gradient) return;  // p.grad.data = ...
  if (name == "requires_grad" && object.opaque() && object.name) {
    std::string_view module = *object.name;
    if (module.ends_with(kParameter)) module.remove_suffix(kParameter.size());
    freeze(module, value);
    return;
  }
  tag_by_name(name, value, nullptr);
  if (object.is(Type::Object) || object.is(Type::Dict) || object.is(Type::Class)) {
    object.heap->fields[std::string(name)] = std::move(value);
  } else if (object.opaque() && object.name) {
    paths_[*object.name + "." + std::string(name)] = std::move(value);
  }
}

void Machine::assign_subscript(const Expr* target, Value value) {
  if (target->kids.size() < 2) return;
  const Value object = evaluate(target->kids[0]);
  const Value key = evaluate(target->kids[1]);
  if (object.is(Type::Sequence) && !object.heap->items.empty()) {
    auto& items = object.heap->items;
    if (key.is(Type::Number) && !object.heap->uniform && key.number >= 0 &&
        key.number < static_cast<double>(items.size()))
      items[static_cast<std::size_t>(key.number)] = std::move(value);
    else
      items[0] = std::move(value);
  } else if (object.is(Type::Dict) && !key.is(Type::String)) {
    object.heap->fields["?"] = std::move(value);  // one entry stands for all
  } else if ((object.is(Type::Dict) || object.is(Type::Object)) && key.is(Type::String)) {
    object.heap->fields[*key.name] = std::move(value);
  } else if (object.has_terms() && key.is(Type::String)) {
    // A dictionary of losses that was made elsewhere: the rest of it stays what it was.
    Value losses;
    losses.type = Type::Dict;
    losses.heap = std::make_shared<Heap>();
    losses.heap->fields[std::string(kRest)] = object;
    losses.heap->fields[*key.name] = std::move(value);
    assign(target->kids[0], std::move(losses), nullptr);
  } else if (object.opaque() && object.name && key.is(Type::String)) {
    paths_[*object.name + "." + *key.name] = std::move(value);
  }
}

}  // namespace batchwright::check
