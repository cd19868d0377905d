// Where a simulation starts: the module itself, a function that another file would call, or a framework's
// hooks.
#include <algorithm>
#include <cmath>

#include "check/library.h"
#include "check/machine.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;

bool sets_false(const std::vector<Stmt*>& block, std::string_view attribute) {
  for (const Stmt* statement : block) {
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 &&
        statement->targets[0]->text == attribute && statement->value && statement->value->text == "False")
      return true;
    if (sets_false(statement->body, attribute) || sets_false(statement->orelse, attribute)) return true;
  }
  return false;
}

// configure_optimizers returns one optimizer, several, ([optimizers], [schedulers]) or dictionaries of them.
Value optimizers_in(const Value& configured) {
  if (configured.is(Type::Object) && configured.heap->role == Role::Optimizer) return configured;
  if (configured.is(Type::Dict)) {
    const auto found = configured.heap->fields.find("optimizer");
    return found == configured.heap->fields.end() ? Value{} : optimizers_in(found->second);
  }
  if (!configured.is(Type::Sequence)) return {};
  const auto& items = configured.heap->items;
  if (!items.empty() && items[0].is(Type::Sequence)) return optimizers_in(items[0]);
  std::vector<Value> optimizers;
  for (const Value& item : items)
    if (const Value found = optimizers_in(item); found.is(Type::Object)) optimizers.push_back(found);
  if (optimizers.empty() || optimizers.size() != items.size()) return {};
  return optimizers.size() == 1 ? optimizers[0] : sequence_value(std::move(optimizers));
}

}  // namespace

void Machine::run_module() {
  execute(module_.body);
  // Whatever the module defines is there for the roots, even where its own code ended early.
  for (const Stmt* statement : module_.body)
    if ((statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) &&
        !globals_->find_here(statement->text)) {
      scope_ = globals_;
      define(statement);
    }
}

void Machine::note_meaning(bool module_trains) {
  bool speaks = module_trains && scan_.speaks_of_accumulation(module_.body);
  for (const Stmt* function : entered_) {
    if (speaks) break;
    for (const auto& parameter : function->parameters) speaks = speaks || names_accumulation(parameter.name);
    speaks = speaks || scan_.speaks_of_accumulation(function->body);
  }
  trace_.speaks_of_accumulation = speaks;
}

void Machine::run_root(const Definition& root) {
  scope_ = globals_;
  Value self;
  Value function;
  function.type = Type::Function;
  function.heap = std::make_shared<Heap>();
  function.heap->definition = root.function;
  function.heap->scope = globals_;
  const auto open = [&](const Stmt* definition, bool method) {
    Arguments arguments;
    for (std::size_t i = method ? 1 : 0; i < definition->parameters.size(); ++i)
      if (!definition->parameters[i].star)
        arguments.keywords.emplace_back(definition->parameters[i].name,
                                        open_argument(definition->parameters[i]));
    return arguments;
  };
  if (root.owner) {
    self = instance(root.owner);
    Value made;
    if (const Value* init = method_of(self, "__init__", made)) {
      const Value constructor = *init;
      Arguments arguments = open(constructor.heap->definition, true);
      call_function(constructor, arguments);
    }
    function.heap->items.push_back(self);
  }
  const std::string name = lower(root.function->text);
  bool per_epoch = contains_any(name, {"epoch"});
  for (const auto& parameter : root.function->parameters) per_epoch = per_epoch || parameter.name == "epoch";
  // A method that handles one batch is called by a loop elsewhere.
  bool has_loop = false;
  for (const Stmt* statement : root.function->body) has_loop = has_loop || contains_loop(statement);
  const int calls = !has_loop ? static_cast<int>(world_.epoch_length()) : per_epoch ? 2 : 1;
  for (int i = 0; i < calls && budget_ > 0; ++i) {
    Arguments arguments = open(root.function, root.owner != nullptr);
    if (!has_loop) {
      for (auto& [key, value] : arguments.keywords)
        if (contains_any(key, {"batch_idx", "step", "iteration", "batch_index", "global_step", "idx", "itr",
                               "iter_num"}) &&
            !names_accumulation(key))
          value = number_value(i, kIndex);
      // Ignite's engine counts from 1 by the time it calls the handler.
      for (const auto& parameter : root.function->parameters)
        paths_[std::string(parameter.name) + ".state.iteration"] = number_value(i + 1, kIndex);
      stamp_ = ++stamps_;
      ++loops_;
    }
    const Value result = call_function(function, arguments);
    if (!has_loop) --loops_;
    // make_train_step(...): the step that it returns is what trains.
    if (result.is(Type::Function) && result.heap->definition && !entered(result.heap->definition) &&
        (scan_.effects(result.heap->definition->body) & kDoesStep)) {
      run_returned(result);
      return;
    }
  }
  if (!has_loop) trace_.endless = true;
}

void Machine::run_returned(const Value& function) {
  for (int i = 0; i < static_cast<int>(world_.epoch_length()) && budget_ > 0; ++i) {
    Arguments arguments;
    for (const auto& parameter : function.heap->definition->parameters)
      if (!parameter.star) arguments.keywords.emplace_back(parameter.name, open_argument(parameter));
    stamp_ = ++stamps_;
    ++loops_;
    call_function(function, arguments);
    --loops_;
  }
  trace_.endless = true;
}

// Whether a statement, or a function of the file that it calls, loops over backward passes.
bool Machine::contains_loop(const Stmt* statement, int depth) const {
  if (statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) return false;
  if (statement->kind == StmtKind::For || statement->kind == StmtKind::While)
    return scan_.effects(statement->body) & kDoesBackward;
  const auto any_of = [&](const std::vector<Stmt*>& block, int deeper) {
    return std::any_of(block.begin(), block.end(),
                       [&](const Stmt* inner) { return contains_loop(inner, deeper); });
  };
  if (any_of(statement->body, depth) || any_of(statement->orelse, depth)) return true;
  bool calls = false;
  each_own_expression(statement, [&](const Expr* part) {
    if (calls || depth >= 4 || part->kind != ExprKind::Call || !(scan_.effects(part) & kDoesBackward)) return;
    const Definition* callee = scan_.callee_of(part);
    calls = callee && any_of(callee->function->body, depth + 1);
  });
  return calls;
}

// The first base of a Trainer subclass that is neither of this file nor a Trainer whose rule is known: others
// set model_accepts_loss_kwargs themselves (TRL's trainers do).
std::string Machine::unknown_base(const Stmt* owner) const {
  for (const Expr* base : owner->bases) {
    if (!base) continue;
    const auto name = last_part(base->source);
    if (const Stmt* own = scan_.find_class(name); own && own != owner) {
      if (std::string unknown = unknown_base(own); !unknown.empty()) return unknown;
      continue;
    }
    std::string meant(name);
    if (const Value* imported = globals_->find(name); imported && imported->name) meant = *imported->name;
    if (!is_one_of(last_part(meant),
                   {"Trainer", "Seq2SeqTrainer", "SFTTrainer", "HfTrainer", "HFTrainer", "ABC", "object"}))
      return std::string(name);
  }
  return {};
}

// Trainer.training_step: loss = compute_loss(...); divided by N unless the model takes the window's label
// count; backward. Trainer._inner_training_loop: N calls, then step and zero.
void Machine::run_trainer(const Stmt* owner) {
  Library library{*this};
  scope_ = globals_;
  Value self = instance(owner);
  self.heap->role = Role::Trainer;
  Value made, init;
  if (const Value* method = method_of(self, "__init__", made)) {
    Arguments arguments;
    const Value constructor = *method;
    for (const auto& parameter : constructor.heap->definition->parameters)
      if (!parameter.star && parameter.name != "self")
        arguments.keywords.emplace_back(parameter.name, named(std::string(parameter.name)));
    call_function(constructor, arguments);
  }
  const auto accepts = self.heap->fields.find("model_accepts_loss_kwargs");
  trace_.unknown_base = unknown_base(owner);
  trainer_divides_ =
      accepts != self.heap->fields.end() && accepts->second.is(Type::Number) && accepts->second.number == 0;
  for (const Stmt* statement : owner->body)
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 &&
        statement->targets[0]->text == "model_accepts_loss_kwargs" && statement->value &&
        statement->value->text == "False")
      trainer_divides_ = true;
  if (sets_false(module_.body, "model_accepts_loss_kwargs")) trainer_divides_ = true;
  self.heap->fields["model_accepts_loss_kwargs"] = bool_value(!trainer_divides_);
  const Stmt* own_step = scan_.find_method(owner, "training_step");
  const Stmt* own_loss = scan_.find_method(owner, "compute_loss");
  if (!own_step && !own_loss) return;
  // A signature from before num_items_in_batch belongs to a release whose Trainer always divided.
  const Stmt* shown = own_loss ? own_loss : own_step;
  bool takes_count = false;
  for (const auto& parameter : shown->parameters)
    takes_count = takes_count || parameter.star || parameter.name == "num_items_in_batch";
  if (!takes_count && own_loss) trainer_divides_ = true;
  // Trainer.get_batch_samples counts only batches that hold "labels": without a count it divides.
  if (!scan_.mentions("\"labels\"") && !scan_.mentions("'labels'") && !scan_.mentions("**inputs") &&
      !scan_.mentions("super().compute_loss") && !scan_.mentions("labels=") && own_loss)
    trainer_divides_ = true;
  trace_.accumulation = world_.accumulation;
  const int optimizer = library.optimizer_id(named("optimizer"));
  accelerate_.used = true;
  accelerate_.steps = 1;
  Value count = named("num_items_in_batch");
  count.taint = kWindowCount;
  for (int micro = 0; micro < 3 * static_cast<int>(world_.accumulation) && budget_ > 0; ++micro) {
    stamp_ = ++stamps_;
    ++loops_;
    Arguments arguments;
    arguments.positional = {named("model"), named("inputs")};
    if (own_step) {
      if (own_step->parameters.size() > 3) arguments.keywords.emplace_back("num_items_in_batch", count);
      call_function(*method_of(self, "training_step", made), arguments);
    } else {
      if (takes_count) arguments.keywords.emplace_back("num_items_in_batch", count);
      Value loss = call_function(*method_of(self, "compute_loss", made), arguments);
      if (loss.is(Type::Sequence) && !loss.heap->items.empty()) loss = loss.heap->items[0];
      if (trainer_divides_)
        loss = scale_by(loss, number_value(world_.accumulation, kAccumulation), true, nullptr);
      library.backward(loss, own_loss->line);
    }
    --loops_;
    if ((micro + 1) % static_cast<int>(world_.accumulation) == 0) {
      library.step(optimizer, owner->line, false);
      library.zero(-1, owner->line);
    }
  }
  trace_.trainer = true;
}

// Trainer.training_step with a compute_loss_func: the loss is what it returns for (outputs, labels,
// num_items_in_batch), and it is never divided.
void Machine::run_loss_function(const Value& function, const Expr* call) {
  Library library{*this};
  trace_.accumulation = world_.accumulation;
  const int optimizer = library.optimizer_id(named("optimizer"));
  Value count = named("num_items_in_batch");
  count.taint = kWindowCount;
  const int n = static_cast<int>(world_.accumulation);
  for (int micro = 0; micro < 3 * n && budget_ > 0; ++micro) {
    stamp_ = ++stamps_;
    ++loops_;
    Arguments arguments;
    arguments.call = call;
    arguments.positional = {symbol_value(nullptr), named("labels"), count};
    library.backward(call_value(function, arguments), call->line);
    --loops_;
    if ((micro + 1) % n != 0) continue;
    library.step(optimizer, call->line, false);
    library.zero(-1, call->line);
  }
  trace_.trainer = true;
}

// Lightning: training_step(batch, batch_idx); with automatic optimization the loop divides the loss by
// accumulate_grad_batches, and steps at every N-th batch and at the last of an epoch.
void Machine::run_lightning(const Stmt* owner) {
  Library library{*this};
  scope_ = globals_;
  const Stmt* own_step = scan_.find_method(owner, "training_step");
  if (!own_step) return;
  Value self = instance(owner);
  Value made;
  if (const Value* method = method_of(self, "__init__", made)) {
    const Value constructor = *method;
    Arguments arguments;
    for (const auto& parameter : constructor.heap->definition->parameters)
      if (!parameter.star && parameter.name != "self")
        arguments.keywords.emplace_back(parameter.name, open_argument(parameter));
    call_function(constructor, arguments);
  }
  const bool manual = sets_false(owner->body, "automatic_optimization");
  lightning_divides_ = !manual;
  const double n = manual ? 1 : world_.accumulation;
  const int optimizer = manual ? -1 : library.optimizer_id(named("optimizer"));
  if (!manual) {
    trace_.accumulation = n;
    trace_.divides_inside = true;
    // A flag that the file does not set is set by a command line: only wrong weights are worth a word then.
  }
  if (scan_.find_method(owner, "configure_optimizers")) {
    Arguments none;
    const Value configured = call_function(*method_of(self, "configure_optimizers", made), none);
    if (manual) configured_ = optimizers_in(configured);
  }
  const int length = static_cast<int>(world_.epoch_length());
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int batch = 0; batch < length && budget_ > 0; ++batch) {
      stamp_ = ++stamps_;
      ++loops_;
      last_batch_ = batch + 1 == length;
      Arguments arguments;
      arguments.positional = {Value{}};
      if (own_step->parameters.size() > 2) arguments.positional.push_back(number_value(batch, kIndex));
      Value loss = call_function(*method_of(self, "training_step", made), arguments);
      if (loss.is(Type::Dict))
        loss = loss.heap->fields.count("loss") ? loss.heap->fields.find("loss")->second : Value{};
      if (!manual) {
        loss = scale_by(loss, number_value(n, kAccumulation), true, nullptr);
        library.backward(loss, own_step->line);
        if ((batch + 1) % static_cast<int>(n) == 0 || last_batch_) {
          library.step(optimizer, own_step->line, false);
          library.zero(-1, own_step->line);
          for (std::size_t i = 0; i < trace_.schedules.size(); ++i) {
            Value scheduler = object_value(Role::Scheduler);
            scheduler.heap->id = static_cast<int>(i);
            if (scan_.mentions("\"step\"") || scan_.mentions("'step'"))
              library.schedule_step(scheduler, trace_.schedules[i].line);
          }
        }
      }
      --loops_;
    }
    Event end;
    end.kind = EventKind::LoopEnd;
    end.line = own_step->line;
    trace_.events.push_back(end);
    for (const auto hook : {"on_train_epoch_end", "training_epoch_end", "on_train_epoch_start"})
      if (manual && scan_.find_method(owner, hook)) {
        Arguments none;
        call_function(*method_of(self, hook, made), none);
      }
  }
  trace_.lightning = !manual;
}

}  // namespace batchwright::check
