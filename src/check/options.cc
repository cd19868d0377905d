#include "check/options.h"

#include <algorithm>

#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

bool is_plain(const Expr* written) {
  if (!written) return false;
  if (written->kind == ExprKind::Unary) return !written->kids.empty() && is_plain(written->kids[0]);
  return written->kind == ExprKind::Constant || written->kind == ExprKind::Number ||
         (written->kind == ExprKind::String && written->kids.empty());
}

const Expr* keyword_of(const Expr* call, std::string_view name) {
  for (const auto& [key, value] : call->keywords)
    if (key == name) return value;
  return nullptr;
}

const Expr* argument_of(const Expr* call, std::size_t place) {
  return place + 1 < call->kids.size() ? call->kids[place + 1] : nullptr;
}

// "--no-average" is args.no_average.
std::string attribute_name(std::string_view option) {
  while (option.starts_with('-')) option.remove_prefix(1);
  std::string name(option);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool same(const OptionDefault& a, const OptionDefault& b) {
  const auto text = [](const OptionDefault& one) -> std::string_view {
    return one.written ? one.written->source : one.flag ? "True" : "False";
  };
  return text(a) == text(b);
}

}  // namespace

Options::Options(const Module& module) {
  each_statement(module.body, [&](const Stmt* one) { statement(one); });
}

const OptionDefault* Options::find(std::string_view name) const {
  const auto found = known_.find(name);
  return found == known_.end() || found->second.ambiguous ? nullptr : &found->second.value;
}

void Options::statement(const Stmt* one) {
  for (const auto& parameter : one->parameters) {
    const Expr* fallback = parameter.fallback;
    // typer.Option(False, ...)
    if (fallback && fallback->kind == ExprKind::Call &&
        is_one_of(called_name(fallback), {"Option", "Argument"}))
      fallback = argument_of(fallback, 0);
    note(parameter.name, fallback);
  }
  if (one->kind == StmtKind::Class)
    for (const Stmt* field : one->body) {
      if (field->kind != StmtKind::Assign || field->targets.size() != 1 ||
          field->targets[0]->kind != ExprKind::Name)
        continue;
      const Expr* written = field->value;
      if (written && written->kind == ExprKind::Call &&
          is_one_of(last_part(called_name(written)), {"field", "Field", "flag", "choice", "HfArg"})) {
        const Expr* given = keyword_of(written, "default");
        written = given ? given : argument_of(written, 0);
      }
      note(field->targets[0]->text, written);
    }
  each_own_expression(one, [&](const Expr* part) {
    if (part->kind == ExprKind::Call) call(part);
  });
}

void Options::call(const Expr* one) {
  const auto name = called_name(one);
  if (is_one_of(name, {"add_argument", "add_arg", "option"})) {
    declare(one);
  } else if (name.starts_with("DEFINE_")) {  // absl: DEFINE_bool("name", False, ...)
    const Expr* flag = argument_of(one, 0);
    if (flag && flag->kind == ExprKind::String) {
      const Expr* given = keyword_of(one, "default");
      note(flag->text, given ? given : argument_of(one, 1));
    }
  } else if (is_one_of(name, {"SimpleNamespace", "Namespace", "EasyDict", "edict", "AttrDict", "DictConfig",
                              "Munch", "ConfigDict", "create", "Box", "DotDict"})) {
    for (const auto& [key, value] : one->keywords) note(key, value);
    entries(argument_of(one, 0));
  } else if (name == "set_defaults") {
    for (const auto& [key, value] : one->keywords)
      known_[std::string(key)] = {{value, false}, !is_plain(value)};
  } else if (name == "get" || name == "getattr") {  // settings.get("name", False)
    const std::size_t first = name == "get" ? 0 : 1;
    const Expr* key = argument_of(one, first);
    if (key && key->kind == ExprKind::String && is_plain(argument_of(one, first + 1)))
      note(key->text, argument_of(one, first + 1));
  }
}

void Options::declare(const Expr* one) {
  std::string name;
  for (std::size_t i = 1; i < one->kids.size(); ++i) {
    const Expr* option = one->kids[i];
    if (!option || option->kind != ExprKind::String) continue;
    const auto text = option->text.substr(0, option->text.find('/'));  // click: "--average/--sum"
    if (!text.starts_with('-')) {
      if (called_name(one) == "option") name = std::string(text);  // click: the parameter's name
      continue;
    }
    if (name.empty() || text.starts_with("--")) name = attribute_name(text);
    if (text.starts_with("--")) break;
  }
  if (const Expr* dest = keyword_of(one, "dest"); dest && dest->kind == ExprKind::String) name = dest->text;
  if (name.empty()) return;
  const Expr* given = keyword_of(one, "default");
  const Expr* action = keyword_of(one, "action");
  const Expr* is_flag = keyword_of(one, "is_flag");
  if (given) {
    note(name, given);
  } else if (action && action->kind == ExprKind::String &&
             is_one_of(action->text, {"store_true", "store_false"})) {
    note_flag(name, action->text == "store_false");
  } else if (is_flag && is_flag->text == "True") {
    note_flag(name, false);
  }
}

void Options::entries(const Expr* dict) {
  if (!dict || dict->kind != ExprKind::Dict) return;
  for (std::size_t i = 0; i + 1 < dict->kids.size(); i += 2) {
    const Expr* key = dict->kids[i];
    if (!key || key->kind != ExprKind::String) continue;
    if (dict->kids[i + 1] && dict->kids[i + 1]->kind == ExprKind::Dict)
      entries(dict->kids[i + 1]);
    else
      note(key->text, dict->kids[i + 1]);
  }
}

void Options::note(std::string_view name, const Expr* written) {
  if (is_plain(written)) add(std::string(name), {written, false});
}

void Options::note_flag(std::string_view name, bool flag) { add(std::string(name), {nullptr, flag}); }

void Options::add(std::string name, OptionDefault found) {
  const auto [at, fresh] = known_.emplace(std::move(name), Known{found, false});
  if (!fresh && !same(at->second.value, found)) at->second.ambiguous = true;
}

}  // namespace batchwright::check
