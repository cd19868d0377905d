#pragma once

#include <string>
#include <string_view>

#include "check/machine.h"

namespace batchwright::check {

// What code outside the file does: Python's built-ins, tensors, optimizers, and the frameworks' rules, each
// from its documentation. Works on one machine's state; holds none of its own.
struct Library {
  Machine& m;

  // A function or class by its dotted name, and a method on any value.
  Value call(const std::string& dotted, Arguments& arguments);
  Value method(Value& object, std::string_view name, Arguments& arguments);

  void enter(const Value& context, int line);
  void backward(const Value& loss, int line);
  void step(int optimizer, int line, bool through_scaler);
  void gluon_step(const Value& trainer, const Value& examples);
  void zero(int optimizer, int line);  // -1: every one
  void clip(int line, bool unscales);
  void apply(const Terms& gradient, int optimizer, int line);  // a step on gradients held in variables
  Terms note_gradient(const Value& loss, const Expr* origin);  // ... which were computed from this loss
  void collect(Terms gradient, int optimizer);                 // what optax.MultiSteps does with it
  void schedule_step(const Value& scheduler, int line, bool at = false);  // at: told where it is
  void report(const Value& value, int line);
  void report_returned(const Value& value, int line);
  void event(EventKind kind, int line, Terms terms = {});
  void scale_gradients(const Value& factor, std::string_view op, int line);
  void set_gradient(const Value& value, int line);
  void note_division(const Value& loss, int line);
  Value native_scaler(Arguments& arguments);
  Role role_of(const Value& object) const;
  int optimizer_id(const Value& object);
  int new_optimizer(const std::string& name);
  void note_owned(int optimizer, const Arguments& arguments);  // the modules whose parameters it was given

 private:
  bool builtin(std::string_view name, Arguments& arguments, Value& out);
  bool iteration(std::string_view name, Arguments& arguments, Value& out);
  bool tensor_function(std::string_view dotted, std::string_view name, Arguments& arguments, Value& out);
  bool constructor(const std::string& dotted, std::string_view name, Arguments& arguments, Value& out);
  bool functional(std::string_view dotted, std::string_view name, Arguments& arguments, Value& out);  // JAX
  Value length(const Value& value, const Expr* call);
  Value mean(const Value& value, const Expr* origin);
  Value sum(const Value& value, const Expr* origin);
  Value longest_length(const Value* function);
  Value make_scheduler(std::string_view name, Arguments& arguments);
  Value make_accelerator(Arguments& arguments);
  Value chunks(double count, double size);

  bool training_method(Value& object, Role role, std::string_view name, Arguments& arguments, Value& out);
  bool accelerate_method(Value& object, std::string_view name, Arguments& arguments, Value& out);
  bool engine_method(Value& object, std::string_view name, Arguments& arguments, Value& out);
  bool lightning_method(Value& object, std::string_view name, Arguments& arguments, Value& out);
  bool super_method(std::string_view name, Arguments& arguments, Value& out);
  bool container_method(Value& object, std::string_view name, Arguments& arguments, Value& out);
  bool tensor_method(Value& object, std::string_view name, Arguments& arguments, Value& out);
  bool gradient_method(std::string_view name, Arguments& arguments);
  bool report_method(Value& object, std::string_view name, Arguments& arguments);
  void overwrite_gradients();
  Value without_differentiated(const Value& loss, const Expr* origin) const;
  void write_back(const Expr* call, const Value& value);
  Value weighted_elsewhere(const Value& value) const;
};

}  // namespace batchwright::check
