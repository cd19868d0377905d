#pragma once

#include <tree_sitter/api.h>

#include <string_view>
#include <vector>

#include "check/syntax.h"

namespace batchwright::check {

// Translates tree-sitter's concrete tree into the small syntax of this room.
class Translator {
 public:
  Translator(std::string_view source, Module& module) : source_(source), module_(module) {}

  void block(TSNode node, std::vector<Stmt*>& out) {
    if (ts_node_is_null(node)) return;
    if (++depth_ > kMaxDepth) {
      module_.incomplete = true;
    } else {
      for (TSNode child : named(node)) statement(child, out);
    }
    --depth_;
  }

 private:
  static constexpr int kMaxDepth = 120;

  static std::vector<TSNode> named(TSNode node) {
    std::vector<TSNode> kids;
    TSTreeCursor cursor = ts_tree_cursor_new(node);
    if (ts_tree_cursor_goto_first_child(&cursor)) {
      do {
        TSNode child = ts_tree_cursor_current_node(&cursor);
        if (ts_node_is_named(child) && type(child) != "comment") kids.push_back(child);
      } while (ts_tree_cursor_goto_next_sibling(&cursor));
    }
    ts_tree_cursor_delete(&cursor);
    return kids;
  }
  static std::string_view type(TSNode node) { return ts_node_type(node); }
  static TSNode field(TSNode node, std::string_view name) {
    return ts_node_child_by_field_name(node, name.data(), static_cast<std::uint32_t>(name.size()));
  }
  std::string_view text(TSNode node) const {
    if (ts_node_is_null(node)) return {};
    const auto begin = ts_node_start_byte(node), end = ts_node_end_byte(node);
    return source_.substr(begin, end - begin);
  }
  static int line(TSNode node) { return static_cast<int>(ts_node_start_point(node).row) + 1; }

  Expr* make(ExprKind kind, TSNode node, std::vector<Expr*> kids = {}, std::string_view word = {}) {
    Expr& made = module_.expressions.emplace_back();
    made.kind = kind;
    made.line = line(node);
    made.kids = std::move(kids);
    made.text = word;
    made.source = text(node);
    return &made;
  }
  Stmt* add(StmtKind kind, TSNode node, std::vector<Stmt*>& out) {
    Stmt& made = module_.statements.emplace_back();
    made.kind = kind;
    made.line = line(node);
    made.last_line = static_cast<int>(ts_node_end_point(node).row) + 1;
    out.push_back(&made);
    return &made;
  }
  void flatten_targets(TSNode node, std::vector<Expr*>& out) { out.push_back(expression(node)); }

  Expr* expression(TSNode node);
  Expr* compare(TSNode node);
  Expr* call(TSNode node);
  Expr* string(TSNode node);
  Expr* number(TSNode node);
  Expr* comprehension(TSNode node);
  Expr* lambda(TSNode node);
  Expr* sequence(ExprKind kind, TSNode node) {
    std::vector<Expr*> kids;
    for (TSNode child : named(node)) kids.push_back(expression(child));
    return make(kind, node, std::move(kids));
  }
  Expr* slice(TSNode node);
  Expr* dictionary(TSNode node);

  void statement(TSNode node, std::vector<Stmt*>& out);
  void simple(TSNode node, std::vector<Stmt*>& out);
  void assignment(TSNode node, std::vector<Stmt*>& out);
  void branch(TSNode node, std::vector<Stmt*>& out);
  void loop(TSNode node, std::vector<Stmt*>& out);
  void with(TSNode node, std::vector<Stmt*>& out);
  void attempt(TSNode node, std::vector<Stmt*>& out);
  void definition(TSNode node, std::vector<Stmt*>& out, std::vector<Expr*> decorators);
  void import(TSNode node, std::vector<Stmt*>& out);

  std::string_view source_;
  Module& module_;
  int depth_ = 0;
};

}  // namespace batchwright::check
