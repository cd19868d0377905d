#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "check/options.h"
#include "check/syntax.h"

namespace batchwright::check {

// What running a piece of code can do to a training, found without running it.
enum Effect : std::uint32_t {
  kDoesBackward = 1,
  kDoesStep = 2,
  kDoesZero = 4,
  kDoesClip = 8,
  kDoesUnscale = 16,
  kDoesSchedule = 32,
  kEntersContext = 64,
  kDoesDivide = 128,  // changes a loss or sets N
  kLeaves = 256,      // continue, break, return, raise
  kDoesEma = 512,
  kChooses = 1024,  // a conditional expression picks a value
  kTraining = kDoesBackward | kDoesStep | kDoesZero | kDoesClip | kDoesUnscale | kDoesSchedule |
              kEntersContext | kDoesDivide | kChooses
};

struct Definition {
  const Stmt* function = nullptr;
  const Stmt* owner = nullptr;  // the class of a method
};

// Where a loop stands: over micro-batches (no step inside), over batches, over epochs (a training loop
// inside).
struct Nest {
  bool backward = false, step = false, inner_backward = false, inner_step = false;
};

// Facts about a whole file: its functions, what they can do, and which names and numbers play the part of N.
class Scan {
 public:
  Scan(const Module& module, std::string_view source);

  std::uint32_t effects(const Stmt* statement) const;
  std::uint32_t effects(const std::vector<Stmt*>& block) const;
  std::uint32_t effects(const Expr* expression) const;
  // With those of the functions that the block defines.
  std::uint32_t effects_with_inner(const std::vector<Stmt*>& block) const;

  const Nest& nest(const Stmt* loop) const;

  const std::vector<Definition>& functions() const { return functions_; }
  const Stmt* find_class(std::string_view name) const;
  // The method of a class or of its bases in this file; nullptr when there is none.
  const Stmt* find_method(const Stmt* owner, std::string_view name) const;
  // What a call can mean in this file, by its name and the kind of its receiver; nullptr when nothing.
  const Definition* callee_of(const Expr* call) const;
  // Whether some function of the file calls it by name.
  bool is_called(const Stmt* function) const { return called_.count(function->text) > 0; }

  // Whether N is divided by the number of processes in a statement of its own.
  bool splits_by_world() const { return splits_by_world_; }
  // Whether a loop that only goes backward runs over it: the micro-batches of one window.
  bool is_window(std::string_view iterable) const { return window_iterables_.count(iterable) > 0; }
  // Whether a loop with a backward in it runs over it.
  bool is_looped(std::string_view iterable) const { return looped_.count(iterable) > 0; }
  // Whether a function of the file takes something of that name.
  bool is_parameter(std::string_view name) const { return parameters_.count(name) > 0; }
  // Whether a loop over micro-batches that steps now and then is as long as what has that name.
  bool bounds_micro_batches(std::string_view name) const { return micro_bounds_.count(name) > 0; }
  // Whether some statement counts it up by one.
  bool is_counter(std::string_view text) const { return counters_.count(text) > 0; }
  // Whether anything in the file is called like N.
  bool names_window() const { return names_window_; }
  // Whether it is summed up and set back to 0 again and again.
  bool restarts(std::string_view text) const {
    const auto found = zeroed_.find(text);
    return found != zeroed_.end() && found->second >= 2 && sums_.count(text) > 0;
  }
  bool is_window_name(std::string_view text) const { return window_names_.count(text) > 0; }
  bool is_window_literal(double number) const { return window_literals_.count(number) > 0; }
  // The largest N that the file writes as a number; 0 when it writes none.
  double largest_window() const { return window_literals_.empty() ? 0 : *window_literals_.rbegin(); }
  bool steps(std::string_view receiver) const { return step_receivers_.count(receiver) > 0; }
  // Whether a method of that name is that of an MXNet Trainer.
  bool is_gluon_step(std::string_view name, std::string_view receiver) const;
  // Whether anything that is stepped is named like an optimizer, a gradient scaler or an engine.
  bool names_optimizer() const;
  bool zeroes(std::string_view receiver) const { return zero_receivers_.count(receiver) > 0; }
  // Whether it takes losses backward and steps: DeepSpeed's engine, or one that is made like it.
  bool drives(std::string_view receiver) const { return steps(receiver) && drivers_.count(receiver) > 0; }
  // Whether its parameter groups are looked at, as only an optimizer's are.
  bool groups(std::string_view receiver) const { return grouped_.count(receiver) > 0; }
  bool mentions(std::string_view word) const { return source_.find(word) != std::string_view::npos; }
  // Whether anything in the file speaks of accumulation: a name, a modulus before a step, a framework's
  // setting.
  bool accumulates() const { return accumulates_; }
  // The same of one block, without the functions and classes that it defines.
  bool speaks_of_accumulation(const std::vector<Stmt*>& block) const;
  std::string_view source() const { return source_; }
  const Options& options() const { return options_; }

 private:
  void collect(const std::vector<Stmt*>& block, const Stmt* owner);
  void find_windows(const std::vector<Stmt*>& block);
  void note_windows(const Expr* condition);
  void note_literals(const std::vector<Stmt*>& block);
  void walk(const Expr* expression);
  std::uint32_t call_effects(const Expr* call) const;
  std::uint32_t own_effects(const Stmt* statement) const;

  std::string_view source_;
  Options options_;
  std::vector<Definition> functions_;
  std::unordered_map<std::string_view, std::vector<Definition>> by_name_;
  std::unordered_map<std::string_view, const Stmt*> classes_;
  std::set<std::string_view> sums_;                // names that something is added to
  std::map<std::string_view, int> zeroed_;         // by name: places that set it to 0
  std::set<std::string_view> counters_;            // names that count up by one
  std::set<std::string_view> gradient_functions_;  // names that hold what value_and_grad made
  std::set<std::string_view> called_, window_names_, step_receivers_, zero_receivers_, grouped_, drivers_;
  std::set<double> window_literals_;
  std::set<std::string_view> window_iterables_, looped_, parameters_, micro_bounds_;
  mutable std::unordered_map<const Stmt*, std::uint32_t> effects_;
  mutable std::unordered_map<const Stmt*, Nest> nests_;
  mutable int depth_ = 0;
  bool accumulates_ = false, names_window_ = false, splits_by_world_ = false;
};

}  // namespace batchwright::check
