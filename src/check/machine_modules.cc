// Which gradients reach which optimizer: by the modules that a loss was computed with and those whose
// parameters the optimizer was given.
#include <algorithm>
#include <cstdint>
#include <functional>

#include "check/machine.h"
#include "check/roles.h"

namespace batchwright::check {
namespace {

using Type = Value::Type;
constexpr std::size_t kMaxModules = 24;
constexpr std::size_t kLongestName = 60;

std::string_view without_self(std::string_view name) {
  if (name.starts_with("self.")) name.remove_prefix(5);
  return name;
}

// "model" holds "model.encoder", and the other way round.
bool same_module(std::string_view a, std::string_view b) {
  if (a == "self" || b == "self") return (a == "self" ? b : a).starts_with("self");
  a = without_self(a);
  b = without_self(b);
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.starts_with(a) && (a.size() == b.size() || b[a.size()] == '.');
}

bool share_module(const std::vector<const std::string*>& some,
                  const std::vector<const std::string*>& others) {
  for (const std::string* a : some)
    for (const std::string* b : others)
      if (same_module(*a, *b)) return true;
  return false;
}

void add_module(std::vector<const std::string*>& modules, const std::string* name) {
  if (modules.size() < kMaxModules && std::find(modules.begin(), modules.end(), name) == modules.end())
    modules.push_back(name);
}

bool is_library(std::string_view name) {
  return name.starts_with("torch.") || name.starts_with("F.") || name.starts_with("nn.") ||
         name.starts_with("tf.") || name.starts_with("jnp.") || name.starts_with("np.");
}

}  // namespace

// What tells one module from another, whatever the variables are called that hold it.
std::string Machine::identity_of(const Value& value) const {
  if (value.is(Type::Object) && value.heap->definition)
    return "object " + std::to_string(reinterpret_cast<std::uintptr_t>(value.heap.get()));
  if (value.has_terms() && value.terms->size() == 1)
    return "made " + std::to_string(value.terms->front().symbol);
  return value.opaque() && value.name ? *value.name : std::string();
}

void Machine::note_modules(Symbol& symbol, const Arguments& arguments, std::string_view callee) {
  const auto take_name = [&](std::string_view name) {
    if (!name.empty() && name.size() <= kLongestName && !is_library(name))
      add_module(symbol.modules, intern(std::string(name)));
  };
  const std::function<void(const Value&, int)> take = [&](const Value& value, int depth) {
    if (value.cut) return;
    take_name(identity_of(value));
    if (value.has_terms())
      for (const Term& term : *value.terms)
        for (const std::string* name : trace_.symbols[static_cast<std::size_t>(term.symbol)].modules)
          add_module(symbol.modules, name);
    if (depth < 2 && (value.is(Type::Sequence) || value.is(Type::Dict)) && value.heap->items.size() <= 16) {
      for (const Value& item : value.heap->items) take(item, depth + 1);
      for (const auto& [name, field] : value.heap->fields) take(field, depth + 1);
    }
  };
  take_name(callee);
  take(arguments.receiver, 0);
  for (const Value& value : arguments.positional) take(value, 0);
  for (const auto& [name, value] : arguments.keywords) take(value, 0);
}

// A loss that can be told to belong to another optimizer's modules leaves this one's gradients alone.
bool Machine::reaches(const Symbol& symbol, std::size_t optimizer) const {
  if (toggled_ >= 0) return static_cast<std::size_t>(toggled_) == optimizer;
  if (optimizer >= owned_.size() || owned_[optimizer].empty() || symbol.modules.empty()) return true;
  const auto frozen = [&](const std::vector<const std::string*>& modules) {
    return std::any_of(modules.begin(), modules.end(),
                       [&](const std::string* name) { return frozen_.count(*name) > 0; });
  };
  if (!frozen_.empty() && frozen(owned_[optimizer])) return false;
  if (share_module(symbol.modules, owned_[optimizer])) return true;
  return std::none_of(owned_.begin(), owned_.end(),
                      [&](const auto& others) { return share_module(symbol.modules, others); });
}

void Machine::freeze(std::string_view module, const Value& requires_grad) {
  const auto on = truth(requires_grad);
  if (!on) return;
  if (*on)
    frozen_.erase(std::string(module));
  else
    frozen_.insert(std::string(module));
}

}  // namespace batchwright::check
