#include "check/values.h"

namespace batchwright::check {

namespace {
constexpr std::size_t kManyVariables = 32;
}

Value* Scope::find_here(std::string_view name) {
  if (variables.size() < kManyVariables) {
    for (auto& [key, value] : variables)
      if (key == name) return &value;
    return nullptr;
  }
  for (std::size_t i = places.size(); i < variables.size(); ++i) places.emplace(variables[i].first, i);
  const auto found = places.find(name);
  return found == places.end() ? nullptr : &variables[found->second].second;
}

void Scope::set(std::string_view name, Value value) {
  for (const auto declared : outer)
    if (declared == name && parent) {
      Value* found = parent->find(name);
      if (found) {
        *found = std::move(value);
      } else {
        Scope* top = parent.get();
        while (top->parent) top = top->parent.get();
        top->variables.emplace_back(name, std::move(value));
      }
      return;
    }
  if (Value* found = find_here(name))
    *found = std::move(value);
  else
    variables.emplace_back(name, std::move(value));
}

Value Value::held() const {
  if (type == Type::Object && heap->role == Role::Cell && !heap->items.empty()) return heap->items[0];
  return *this;
}

Value cell_value(Value first) {
  Value cell = object_value(Role::Cell);
  cell.heap->items.push_back(std::move(first));
  return cell;
}

Value number_value(double number, std::uint16_t taint) {
  Value value;
  value.type = Value::Type::Number;
  value.number = number;
  value.taint = taint;
  return value;
}

Value bool_value(bool truth) {
  Value value = number_value(truth ? 1 : 0);
  value.is_bool = true;
  return value;
}

Value none_value() {
  Value value;
  value.type = Value::Type::None;
  return value;
}

Value object_value(Role role) {
  Value value;
  value.type = Value::Type::Object;
  value.heap = std::make_shared<Heap>();
  value.heap->role = role;
  return value;
}

Value sequence_value(std::vector<Value> items, bool uniform) {
  Value value;
  value.type = Value::Type::Sequence;
  value.heap = std::make_shared<Heap>();
  value.heap->items = std::move(items);
  value.heap->uniform = uniform;
  return value;
}

}  // namespace batchwright::check
