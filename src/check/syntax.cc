#include "check/syntax.h"

#include <tree_sitter/api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "check/syntax_translate.h"

extern "C" const TSLanguage* tree_sitter_python(void);

namespace batchwright::check {
namespace {

constexpr std::uint64_t kMaxParseMicroseconds = 3'000'000;
constexpr int kMaxBranches = 300;  // each elif nests in the one before

}  // namespace

void Translator::statement(TSNode node, std::vector<Stmt*>& out) {
  const auto kind = type(node);
  if (kind == "if_statement") return branch(node, out);
  if (kind == "for_statement" || kind == "while_statement") return loop(node, out);
  if (kind == "with_statement") return with(node, out);
  if (kind == "try_statement") return attempt(node, out);
  if (kind == "function_definition" || kind == "class_definition") return definition(node, out, {});
  if (kind == "decorated_definition") {
    std::vector<Expr*> decorators;
    for (TSNode child : named(node))
      if (type(child) == "decorator" && !named(child).empty())
        decorators.push_back(expression(named(child).front()));
    const TSNode inner = field(node, "definition");
    if (!ts_node_is_null(inner)) definition(inner, out, std::move(decorators));
    return;
  }
  if (kind == "ERROR") return block(node, out);
  simple(node, out);
}

void Translator::simple(TSNode node, std::vector<Stmt*>& out) {
  const auto kind = type(node);
  if (kind == "expression_statement") {
    const auto parts = named(node);
    if (parts.size() == 1 && (type(parts[0]) == "assignment" || type(parts[0]) == "augmented_assignment"))
      return assignment(parts[0], out);
    auto* made = add(StmtKind::Expression, node, out);
    made->value = parts.size() == 1 ? expression(parts[0]) : sequence(ExprKind::Tuple, node);
  } else if (kind == "return_statement" || kind == "raise_statement") {
    auto* made = add(kind == "return_statement" ? StmtKind::Return : StmtKind::Raise, node, out);
    const auto parts = named(node);
    if (!parts.empty()) made->value = expression(parts.front());
  } else if (kind == "break_statement") {
    add(StmtKind::Break, node, out);
  } else if (kind == "continue_statement") {
    add(StmtKind::Continue, node, out);
  } else if (kind.starts_with("import")) {
    import(node, out);
  } else if (kind == "global_statement" || kind == "nonlocal_statement") {
    auto* made = add(StmtKind::Global, node, out);
    for (TSNode child : named(node)) made->targets.push_back(expression(child));
  } else if (kind == "match_statement") {
    block(field(node, "body"), add(StmtKind::Other, node, out)->body);
  } else {
    add(StmtKind::Other, node, out);
  }
}

void Translator::assignment(TSNode node, std::vector<Stmt*>& out) {
  if (type(node) == "augmented_assignment") {
    auto* made = add(StmtKind::AugAssign, node, out);
    made->targets.push_back(expression(field(node, "left")));
    made->value = expression(field(node, "right"));
    made->text = text(field(node, "operator"));
    if (!made->text.empty()) made->text.remove_suffix(1);
    return;
  }
  auto* made = add(StmtKind::Assign, node, out);
  TSNode current = node;
  while (!ts_node_is_null(current) && type(current) == "assignment" && made->targets.size() < 64) {
    flatten_targets(field(current, "left"), made->targets);
    current = field(current, "right");
  }
  made->value = expression(current);  // nullptr for a bare annotation
}

void Translator::branch(TSNode node, std::vector<Stmt*>& out) {
  auto* made = add(StmtKind::If, node, out);
  made->value = expression(field(node, "condition"));
  block(field(node, "consequence"), made->body);
  Stmt* last = made;
  int branches = 0;
  for (TSNode child : named(node)) {
    if (type(child) == "elif_clause" && ++branches > kMaxBranches) {
      module_.incomplete = true;
      break;
    }
    if (type(child) == "elif_clause") {
      auto* next = add(StmtKind::If, child, last->orelse);
      next->value = expression(field(child, "condition"));
      block(field(child, "consequence"), next->body);
      last = next;
    } else if (type(child) == "else_clause") {
      block(field(child, "body"), last->orelse);
    }
  }
}

void Translator::loop(TSNode node, std::vector<Stmt*>& out) {
  const bool is_for = type(node) == "for_statement";
  auto* made = add(is_for ? StmtKind::For : StmtKind::While, node, out);
  if (is_for) flatten_targets(field(node, "left"), made->targets);
  made->value = expression(field(node, is_for ? "right" : "condition"));
  block(field(node, "body"), made->body);
  const TSNode alternative = field(node, "alternative");
  if (!ts_node_is_null(alternative)) block(field(alternative, "body"), made->orelse);
}

void Translator::with(TSNode node, std::vector<Stmt*>& out) {
  auto* made = add(StmtKind::With, node, out);
  for (TSNode clause : named(node)) {
    if (type(clause) != "with_clause") continue;
    auto items = named(clause);
    for (std::size_t i = 0; i < items.size(); ++i) {
      TSNode value = field(items[i], "value");
      if (ts_node_is_null(value)) continue;
      // "with (a(), b() as c):" reads as one tuple: its parts are contexts of their own.
      const auto contexts = type(value) == "tuple" ? named(value) : std::vector<TSNode>{value};
      for (TSNode context : contexts) {
        if (type(context) == "as_pattern") {
          const auto parts = named(context);
          if (parts.empty()) continue;
          Expr* target = nullptr;
          if (parts.size() > 1) {
            const auto inner = named(parts[1]);
            target = expression(inner.empty() ? parts[1] : inner.front());
          }
          made->items.emplace_back(expression(parts[0]), target);
        } else {
          made->items.emplace_back(expression(context), nullptr);
        }
      }
    }
  }
  block(field(node, "body"), made->body);
}

void Translator::attempt(TSNode node, std::vector<Stmt*>& out) {
  auto* made = add(StmtKind::Try, node, out);
  block(field(node, "body"), made->body);
  for (TSNode child : named(node)) {
    const auto kind = type(child);
    const bool is_handler = kind.starts_with("except");
    if (!is_handler && kind != "else_clause" && kind != "finally_clause") continue;
    for (TSNode part : named(child))
      if (type(part) == "block") block(part, is_handler ? made->handlers : made->orelse);
  }
}

void Translator::definition(TSNode node, std::vector<Stmt*>& out, std::vector<Expr*> decorators) {
  const bool is_function = type(node) == "function_definition";
  auto* made = add(is_function ? StmtKind::Function : StmtKind::Class, node, out);
  made->text = text(field(node, "name"));
  made->decorators = std::move(decorators);
  if (is_function) {
    const TSNode parameters = field(node, "parameters");
    if (!ts_node_is_null(parameters))
      for (TSNode child : named(parameters)) {
        const auto kind = type(child);
        Parameter parameter;
        TSNode name = field(child, "name");
        if (ts_node_is_null(name)) {
          const auto parts = named(child);
          name = kind == "typed_parameter" && !parts.empty() ? parts.front() : child;
        }
        parameter.star = text(name).starts_with('*');
        parameter.name = text(name);
        while (parameter.name.starts_with('*')) parameter.name.remove_prefix(1);
        parameter.fallback = expression(field(child, "value"));
        if (!parameter.name.empty() && kind != "keyword_separator" && kind != "positional_separator")
          made->parameters.push_back(parameter);
      }
  } else {
    const TSNode bases = field(node, "superclasses");
    if (!ts_node_is_null(bases))
      for (TSNode child : named(bases))
        if (type(child) != "keyword_argument") made->bases.push_back(expression(child));
  }
  block(field(node, "body"), made->body);
}

void Translator::import(TSNode node, std::vector<Stmt*>& out) {
  auto* made = add(StmtKind::Import, node, out);
  const TSNode from = field(node, "module_name");
  const std::string prefix = ts_node_is_null(from) ? "" : std::string(text(from)) + ".";
  for (TSNode child : named(node)) {
    if (!ts_node_is_null(from) && ts_node_eq(child, from)) continue;
    if (type(child) == "aliased_import") {
      made->imports.emplace_back(text(field(child, "alias")),
                                 prefix + std::string(text(field(child, "name"))));
    } else if (type(child) == "dotted_name") {
      const auto name = text(child);
      if (prefix.empty()) {
        const auto first = name.substr(0, name.find('.'));
        made->imports.emplace_back(first, std::string(first));
      } else {
        made->imports.emplace_back(name, prefix + std::string(name));
      }
    }
  }
}

Module parse_python(std::string_view source) {
  Module module;
  std::unique_ptr<TSParser, decltype(&ts_parser_delete)> parser(ts_parser_new(), &ts_parser_delete);
  ts_parser_set_language(parser.get(), tree_sitter_python());
  ts_parser_set_timeout_micros(parser.get(), kMaxParseMicroseconds);
  std::unique_ptr<TSTree, decltype(&ts_tree_delete)> tree(
      ts_parser_parse_string(parser.get(), nullptr, source.data(), static_cast<std::uint32_t>(source.size())),
      &ts_tree_delete);
  if (!tree) {
    module.incomplete = true;
    return module;
  }
  const TSNode root = ts_tree_root_node(tree.get());
  module.has_errors = ts_node_has_error(root);
  Translator(source, module).block(root, module.body);
  return module;
}

}  // namespace batchwright::check
