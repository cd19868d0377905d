#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "check/syntax.h"

namespace batchwright::check {

// Visits in source order: every statement of a block and of the blocks inside it; every part of an
// expression; the expressions that a statement holds itself; every expression of a block.
template <typename Visit>
void each_statement(const std::vector<Stmt*>& block, const Visit& visit) {
  for (const Stmt* statement : block) {
    visit(statement);
    each_statement(statement->body, visit);
    each_statement(statement->orelse, visit);
    each_statement(statement->handlers, visit);
  }
}

template <typename Visit>
void each_expression(const Expr* expression, const Visit& visit) {
  if (!expression) return;
  visit(expression);
  for (const Expr* kid : expression->kids) each_expression(kid, visit);
  for (const auto& [name, value] : expression->keywords) each_expression(value, visit);
}

template <typename Visit>
void each_own_expression(const Stmt* statement, const Visit& visit) {
  each_expression(statement->value, visit);
  for (const Expr* target : statement->targets) each_expression(target, visit);
  for (const auto& [context, target] : statement->items) each_expression(context, visit);
  for (const Expr* decorator : statement->decorators) each_expression(decorator, visit);
}

template <typename Visit>
void each_expression_of(const std::vector<Stmt*>& block, const Visit& visit) {
  each_statement(block, [&](const Stmt* statement) { each_own_expression(statement, visit); });
}

// Whether a name or an attribute of that text occurs in a block.
inline bool block_mentions(const std::vector<Stmt*>& block, std::string_view word) {
  bool found = false;
  each_expression_of(block, [&](const Expr* part) { found = found || part->text == word; });
  for (const Stmt* statement : block)
    for (const auto& [context, target] : statement->items)
      found = found || context->source.find(word) != std::string_view::npos;
  return found;
}

// Whether the file defines a function or class of that name.
inline bool scan_defines(const Module& module, std::string_view name) {
  bool found = false;
  each_statement(module.body, [&](const Stmt* statement) {
    found = found || ((statement->kind == StmtKind::Function || statement->kind == StmtKind::Class) &&
                      statement->text == name);
  });
  return found;
}

// Of a call: what is called, its last name, and the text before the last dot.
inline const Expr* callee(const Expr* call) { return call->kids.empty() ? nullptr : call->kids[0]; }

inline std::string_view called_name(const Expr* call) {
  const Expr* function = callee(call);
  if (!function) return {};
  return function->kind == ExprKind::Name || function->kind == ExprKind::Attribute ? function->text
                                                                                   : std::string_view{};
}

inline std::string_view receiver(const Expr* call) {
  const Expr* function = callee(call);
  return function && function->kind == ExprKind::Attribute && function->kids[0] ? function->kids[0]->source
                                                                                : std::string_view{};
}

inline bool is_call_of(const Expr* call, std::initializer_list<std::string_view> names) {
  if (call->kind != ExprKind::Call || !callee(call)) return false;
  return std::find(names.begin(), names.end(), callee(call)->text) != names.end();
}

}  // namespace batchwright::check
