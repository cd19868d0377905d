#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "check/syntax.h"

namespace batchwright::check {

// What a number derives from: which quantities of training arithmetic went into it.
enum Taint : std::uint16_t {
  kAccumulation = 1,  // the accumulation steps N, or a count of the micro-batches of one window
  kWorld = 2,         // the number of processes on all nodes
  kLocalWorld = 4,    // the devices of one node
  kBatchSize = 8,     // the size of a micro-batch
  kGlobalBatch = 16,  // the effective batch
  kLength = 32,       // len() of a data loader: micro-batches in an epoch
  kWindowCount = 64,  // labels, tokens or examples of a whole window
  kIndex = 128,       // counts iterations or steps
};

// One evaluation of a loss (or of any call that cannot be followed): what gradients are sums of.
struct Symbol {
  const Expr* origin = nullptr;
  int line = 0;
  int stamp = 0;        // the loop iteration in which it was evaluated: the micro-batch
  bool summed = false;  // a sum over examples or tokens, not a mean
  bool count = false;   // a number of examples or tokens
  // What its gradient can reach, by the names of the things that were called to compute it.
  std::vector<const std::string*> modules;
};

// One symbol's share in a loss, a gradient buffer or a reported number. The factor is kept apart by origin,
// because only the part that comes from the window must make the shares sum to 1.
struct Term {
  int symbol = 0;
  double window = 1;        // product of factors that derive from N
  double world = 1;         // ... from the number of processes
  double literal = 1;       // ... from numbers written in the code
  double averaged = 1;      // ... from counts of iterations: an average over an epoch, say
  bool normalised = false;  // divided by a count over the whole window
  bool counted = false;     // divided or multiplied by its own micro-batch's count
  bool scaled = false;      // carries the loss scale of a gradient scaler
  bool rescaled = false;    // divided by something that another file computed
  bool uncertain = false;   // passed with N through code that is not in this file
};
using Terms = std::vector<Term>;

enum class Role : std::uint8_t {
  None,
  Optimizer,
  Scheduler,
  Scaler,
  Accelerator,
  Fabric,
  Engine,
  NoSync,
  Accumulate,
  NoGrad,   // nothing computed inside has a gradient
  Manager,  // a @contextmanager function of the file, called and not yet entered
  OtherContext,
  Loader,
  Tape,
  Parameters,  // an iterable of parameters: one stands for all
  Gradient,    // the .grad of one of them
  Cell,        // a variable that is changed in place: heap->items[0]
  Super,
  Trainer,
  Ema
};

struct Heap;
struct Scope;

struct Value {
  enum class Type : std::uint8_t {
    Opaque,  // unknown, with a dotted name or with terms or with neither
    None,
    Number,
    String,
    Sequence,  // heap->items; `uniform`: one item stands for every one
    Dict,      // heap->fields
    Object,    // heap->role, heap->fields; an instance of heap->definition when it is of this file
    Function,
    Lambda,
    Class,
    Bound,     // method `name` of heap->items[0]
    Iterator,  // heap->...: see Heap
  };
  Type type = Type::Opaque;
  bool is_bool = false;
  bool cut = false;  // no gradient flows back through it (detached, or computed without one)
  std::uint16_t taint = 0;
  double number = 0;                   // Number; Opaque: its size along the batch when > 0
  const std::string* name = nullptr;   // Opaque: dotted name; String: text; Bound: method
  std::shared_ptr<const Terms> terms;  // Opaque
  std::shared_ptr<Heap> heap;

  // The value of a variable that is changed in place; any other value is itself.
  Value held() const;
  bool is(Type wanted) const { return type == wanted; }
  bool opaque() const { return type == Type::Opaque; }
  bool has_terms() const { return terms != nullptr && !terms->empty(); }
};

enum class IteratorKind : std::uint8_t { Data, Range, Enumerate, Zip, Items, Slice, Endless };

// What a value shares by reference.
struct Heap {
  Role role = Role::None;
  int id = 0;  // optimizers and schedulers: index into the machine's tables
  bool uniform = false;
  bool prepared = false;
  bool filled_elsewhere = false;  // an empty list that other code was given: one open item stands for its own
  std::vector<Value> items;
  std::map<std::string, Value, std::less<>> fields;
  const Stmt* definition = nullptr;
  const Expr* lambda = nullptr;
  std::shared_ptr<Scope> scope;
  // Iterators: `count` items are left to give (negative: endless); items[0] is the inner iterator or
  // template.
  IteratorKind kind = IteratorKind::Data;
  double count = 0, position = 0, start = 0, step = 1;
  std::uint16_t taint = 0;
  bool truncated = false;  // fewer iterations than the program would make
};

// Local variables of one call (or of the module). Lookups go to the parent.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string_view, Value>> variables;
  std::vector<std::string_view> outer;                       // declared global or nonlocal
  std::unordered_map<std::string_view, std::size_t> places;  // kept only once there are many variables
  Value* find_here(std::string_view name);
  Value* find(std::string_view name) {
    for (Scope* scope = this; scope; scope = scope->parent.get())
      if (Value* found = scope->find_here(name)) return found;
    return nullptr;
  }
  void set(std::string_view name, Value value);
};

Value number_value(double number, std::uint16_t taint = 0);
Value bool_value(bool truth);
Value none_value();
Value cell_value(Value first);
Value object_value(Role role);
Value sequence_value(std::vector<Value> items, bool uniform = false);

}  // namespace batchwright::check
