#include "check/machine.h"

#include <unordered_set>

namespace batchwright::check {
namespace {

// Evaluations of one run: a training loop of two epochs takes a few thousand.
constexpr long kBudget = 120'000;

// Collects everything that a value refers to.
struct Reachable {
  std::unordered_set<Heap*> heaps;
  std::vector<std::shared_ptr<Heap>> pending;

  void add(const Value& value) {
    if (value.heap && heaps.insert(value.heap.get()).second) pending.push_back(value.heap);
  }
  void follow() {
    for (std::size_t i = 0; i < pending.size(); ++i) {
      const std::shared_ptr<Heap> heap = pending[i];
      for (const Value& item : heap->items) add(item);
      for (const auto& [name, field] : heap->fields) add(field);
    }
  }
};

}  // namespace

Machine::Machine(const Module& module, const Scan& scan, World world)
    : module_(module),
      scan_(scan),
      world_(std::move(world)),
      globals_(new_scope(nullptr)),
      scope_(globals_),
      budget_(kBudget) {
  trace_.used_fsdp =
      scan_.mentions("FSDP") || scan_.mentions("FullyShardedDataParallel") || scan_.mentions("fully_shard");
}

// Functions hold the scope that holds them, and objects each other: the cycles are cut by hand.
Machine::~Machine() {
  Reachable reachable;
  for (const auto& scope : scopes_)
    for (const auto& [name, value] : scope->variables) reachable.add(value);
  for (const auto& [name, value] : paths_) reachable.add(value);
  for (const Value& hook : hooks_) reachable.add(hook);
  reachable.follow();
  for (const auto& heap : reachable.pending) {
    heap->items.clear();
    heap->fields.clear();
    heap->scope.reset();
  }
  for (const auto& scope : scopes_) {
    scope->variables.clear();
    scope->parent.reset();
  }
}

std::shared_ptr<Scope> Machine::new_scope(std::shared_ptr<Scope> parent) {
  auto scope = std::make_shared<Scope>();
  scope->parent = std::move(parent);
  scopes_.push_back(scope);
  return scope;
}

}  // namespace batchwright::check
