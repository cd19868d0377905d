#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "check/scan.h"
#include "check/syntax.h"
#include "check/trace.h"
#include "check/values.h"

namespace batchwright::check {

// One reading of a program whose conditions cannot all be computed: which side each open one takes, by its
// normalised text. A condition that is not named takes its usual side.
struct World {
  std::map<std::string, bool, std::less<>> choices;
  double accumulation = 4;  // N where the program leaves it open, and where its own number is large
  // Micro-batches in an epoch: four windows and a partial one.
  double epoch_accumulation = 4;
  double epoch_length() const { return 4 * epoch_accumulation + 2; }
};

struct Arguments {
  const Expr* call = nullptr;
  Value receiver = {};  // of a method: the object
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> keywords;
  const Value* keyword(std::string_view name) const {
    for (const auto& [key, value] : keywords)
      if (key == name) return &value;
    return nullptr;
  }
  // The argument at a place or of a name; nullptr when it is not given.
  const Value* get(std::size_t place, std::string_view name) const {
    const Value* named = keyword(name);
    return named ? named : place < positional.size() ? &positional[place] : nullptr;
  }
};

// The field of a dictionary that stands for all that are not named.
constexpr std::string_view kRest = "";

// A next() past the end inside a try.
struct StopIteration {};

// What a loop over the parameters of a module gives, as "module.parameter[]".
constexpr std::string_view kParameter = ".parameter[]";

enum class Flow { Normal, Break, Continue, Return, Raise };

// Runs a program on abstract values: control flow is followed for real, numbers are numbers, and every loss
// is a symbol whose way into the gradients is recorded. Bounded by a number of evaluations.
class Machine {
 public:
  Machine(const Module& module, const Scan& scan, World world);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void run_module();
  // Calls a function or method with open arguments, as some other file would.
  void run_root(const Definition& root);
  void run_trainer(const Stmt* owner);    // a Transformers Trainer subclass, inside the Trainer's own loop
  void run_lightning(const Stmt* owner);  // a LightningModule, inside Lightning's own loop
  // To be called after a run: whether what ran speaks of accumulation, in a file where something does.
  void note_meaning(bool module_trains);

  const Trace& trace() const { return trace_; }
  long spent() const { return spent_; }  // evaluations
  bool entered(const Stmt* function) const { return entered_.count(function) > 0; }
  // Open conditions that decided over training code, with the side that was taken.
  const std::map<std::string, bool, std::less<>>& decisions() const { return decisions_; }
  // Whether a decision is over nothing but the size of a loss and zeroing, everywhere that it is asked.
  bool only_adjusts(const std::string& condition) const {
    const auto found = decided_effects_.find(condition);
    return found != decided_effects_.end() && (found->second & (kDoesDivide | kDoesZero)) &&
           (found->second & ~(kDoesDivide | kDoesZero | kChooses)) == 0;
  }

 private:
  friend struct Library;   // functions and methods that are not in the file
  friend struct Training;  // what backward, step, zero_grad, ... do

  struct Buffer {
    Terms terms;
    bool clipped = false;
    int unscaled = 0;
  };
  // A with statement around a @contextmanager function: what runs where the function yields.
  struct Suspension {
    const Stmt* manager;
    std::function<Flow()> inside;
    std::shared_ptr<Scope> scope;
    bool ran = false;
    Flow flow = Flow::Normal;
  };
  // What a thrown StopIteration has to put back.
  struct Place {
    std::shared_ptr<Scope> scope;
    std::size_t contexts, calls, suspensions;
    int depth, stamp, loops;
  };
  struct Context {
    Role role;
    bool active;  // NoSync: whether the exchange is really off
  };
  struct AccelerateState {
    double steps = 1;
    int counter = 0;
    bool sync = true, used = false, split_batches = false, adjusts_scheduler = true;
  };

  // machine_statements.cc
  Flow execute(const std::vector<Stmt*>& block);
  Flow execute(const Stmt* statement);
  Flow execute_if(const Stmt* statement);
  Flow execute_with(const Stmt* statement);
  Flow execute_with_from(const Stmt* statement, std::size_t item);
  Flow run_manager(const Value& manager, const Expr* target, const std::function<Flow()>& inside);
  Value yield(Value value);
  Flow execute_try(const Stmt* statement);
  void execute_assign(const Stmt* statement);
  void execute_augmented(const Stmt* statement);
  void define(const Stmt* statement);
  bool asks_of_set_up(const Expr* condition);
  bool decide(const Expr* condition, std::uint32_t then_effects, std::uint32_t else_effects);
  bool decide_open(const Expr* condition, std::uint32_t then_effects, std::uint32_t else_effects);
  // machine_assign.cc
  void assign(const Expr* target, Value value, const Expr* source);
  void assign_attribute(const Expr* target, Value value);
  void assign_subscript(const Expr* target, Value value);
  void tag_by_name(std::string_view name, Value& value, const Expr* source);
  void note_effective_batch(const Value& steps);
  // machine_options.cc: what a condition or a value is when no option is set.
  std::optional<bool> default_side(const Expr* condition);
  std::optional<Value> default_value(const Expr* expression);

  // machine_loops.cc
  Flow execute_for(const Stmt* statement);
  Flow execute_while(const Stmt* statement);
  Flow run_body(const Stmt* statement);
  Value iterator_of(const Value& value);
  std::optional<Value> next_item(Heap& iterator);
  double iteration_limit(const Stmt* loop, const Value& iterable, bool& truncated);
  double open_length(const Value& iterable, std::string_view text) const;
  bool holds_open_epoch(const Expr* written);
  void loop_ended(const Stmt* loop, bool truncated);

  // machine_expressions.cc
  Value evaluate(const Expr* expression);
  Value evaluate_name(const Expr* expression);
  Value evaluate_attribute(const Expr* expression);
  Value attribute_of(const Value& object, std::string_view name, const Expr* expression);
  Value class_value(std::string_view name, const Expr* written);
  Value set_elsewhere(const Value& object, std::string_view name);
  Value evaluate_subscript(const Expr* expression);
  Value evaluate_unary(const Expr* expression);
  Value evaluate_compare(const Expr* expression);
  std::optional<Value> periodic(const Expr* test);
  std::optional<bool> meets_limit(const Value& counter, const Value& limit, const Expr* expression,
                                  std::size_t side) const;
  std::optional<bool> end_of_epoch(const Expr* expression);
  Value evaluate_logic(const Expr* expression);
  Value evaluate_comprehension(const Expr* expression);
  void comprehend(const Expr* expression, std::size_t clause, std::vector<Value>& out);
  Value binary(std::string_view op, const Value& left, const Value& right, const Expr* expression);
  Value arithmetic(std::string_view op, double left, double right, std::uint16_t taint) const;
  std::optional<bool> truth(const Value& value) const;
  std::optional<Value> as_number(const Value& value) const;
  double window_literal(double number) const;

  // machine_terms.cc
  Value symbol_value(const Expr* origin);
  Value with_terms(Terms terms) const;
  Terms terms_of(const Value& value, const Expr* origin);
  Value add(const Value& left, const Value& right, double sign, const Expr* origin);
  Value scale_by(const Value& value, const Value& factor, bool divide, const Expr* origin);
  bool is_count(const Value& value) const;
  Value product_of(const Value& left, const Value& right, const Expr* origin);
  Value part_of(const Value& whole, const Expr* target);
  bool from_this_iteration(const Terms& divisor, const Terms& dividend) const;

  // machine_calls.cc
  Value evaluate_call(const Expr* call);
  Arguments arguments_of(const Expr* call);
  Value call_value(const Value& function, Arguments& arguments);
  Value call_function(const Value& function, Arguments& arguments);
  Value call_method(Value object, std::string_view name, Arguments& arguments);
  Value construct(const Value& type, Arguments& arguments);
  void bind(const Stmt* function, Arguments& arguments, const Value* self, Scope& scope);
  Value default_of(const Parameter& parameter, const Scope& scope);
  Value open_argument(const Parameter& parameter);
  Value opaque_call(Arguments& arguments, std::string_view callee = {});
  void note_modules(Symbol& symbol, const Arguments& arguments, std::string_view callee);
  bool reaches(const Symbol& symbol, std::size_t optimizer) const;
  void note_summed(const Value& criterion, const Value& result);
  std::string identity_of(const Value& value) const;
  void freeze(std::string_view module, const Value& requires_grad);
  Value instance(const Stmt* owner);
  bool contains_loop(const Stmt* statement, int depth = 0) const;
  const Value* method_of(const Value& object, std::string_view name, Value& made);

  std::shared_ptr<Scope> new_scope(std::shared_ptr<Scope> parent);
  Value named(std::string name);
  const std::string* intern(std::string text);
  bool spend();  // false when the budget of evaluations is used up
  int line_of(const Expr* expression) const { return expression ? expression->line : line_; }
  bool in_context(Role role) const;
  void run_returned(const Value& function);
  // A function given as compute_loss_func, inside the Trainer's own loop.
  void run_loss_function(const Value& function, const Expr* call);
  // Whether a count of tokens that starts anew with every window has reached its limit.
  std::optional<bool> closes_on_tokens(const Expr* compare);
  std::string unknown_base(const Stmt* owner) const;

  const Module& module_;
  const Scan& scan_;
  World world_;
  Trace trace_;
  std::vector<std::shared_ptr<Scope>> scopes_;  // every one of this run
  std::shared_ptr<Scope> globals_, scope_;
  std::set<std::string> names_;
  std::map<std::string, Value, std::less<>> paths_;  // attributes set on objects that are not of this file
  std::map<std::string, int, std::less<>> optimizer_ids_;
  std::map<std::string, int, std::less<>> scheduler_ids_;
  std::vector<Buffer> buffers_;
  std::vector<int> steps_taken_;
  std::vector<Context> contexts_;
  std::vector<Suspension*> suspensions_;
  const Expr* manager_target_ = nullptr;       // `as` of the manager that is being entered
  std::set<std::string, std::less<>> frozen_;  // modules whose parameters ask for no gradient
  int toggled_ = -1;          // Lightning's toggle_optimizer: the only one that gets gradients
  Value configured_;          // what configure_optimizers returned
  std::vector<Value> hooks_;  // functions that run at every backward
  std::set<std::string, std::less<>> prepared_names_;  // schedulers that went through Accelerator.prepare()
  std::map<std::string, Value, std::less<>> differentiated_;  // what jax.grad was given
  std::vector<Value> yields_;
  std::vector<std::vector<const std::string*>> owned_;  // by optimizer: its modules; empty: not known
  AccelerateState accelerate_;
  std::vector<int> inner_schedules_;       // optax schedules that an optimizer was made with
  int token_asks_ = 0, token_window_ = 3;  // micro-batches so far, and until the window is full
  int dynamic_count_ = 5, engine_micro_steps_ = 0, multi_updates_ = 0;
  double engine_steps_ = 0,
         multi_steps_ = 0;      // N of a DeepSpeed engine (0: not told) and of optax.MultiSteps
  double period_counter_ = -1;  // what the innermost "every so often" condition tested
  bool sync_required_ = true;   // DistributedDataParallel.require_backward_grad_sync
  bool last_batch_ = false, in_hook_ = false, lightning_divides_ = false, trainer_divides_ = false,
       loader_prepared_ = false, accelerator_backward_ = false;
  Value returned_;
  std::map<std::string, bool, std::less<>> decisions_;
  std::map<std::string, std::uint32_t, std::less<>> decided_effects_;
  std::unordered_set<const Stmt*> entered_;
  std::vector<const Stmt*> stack_;
  long budget_, spent_ = 0;
  int depth_ = 0, stamp_ = 0, stamps_ = 0, line_ = 0, try_depth_ = 0, loops_ = 0;
};

}  // namespace batchwright::check
