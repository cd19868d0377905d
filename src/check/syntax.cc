#include "check/syntax.h"

#include <tree_sitter/api.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>

extern "C" const TSLanguage* tree_sitter_python(void);

namespace batchwright::check {
namespace {

constexpr int kMaxDepth = 120;
constexpr std::uint64_t kMaxParseMicroseconds = 3'000'000;

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

Expr* Translator::expression(TSNode node) {
  if (ts_node_is_null(node)) return nullptr;
  struct Depth {
    int& value;
    explicit Depth(int& at) : value(at) { ++value; }
    ~Depth() { --value; }
  } depth(depth_);
  if (depth_ > kMaxDepth) {
    module_.incomplete = true;
    return make(ExprKind::Other, node);
  }
  const auto kind = type(node);
  if (kind == "identifier" || kind == "keyword_identifier") return make(ExprKind::Name, node, {}, text(node));
  if (kind == "integer" || kind == "float") return number(node);
  if (kind == "string" || kind == "concatenated_string") return string(node);
  if (kind == "true" || kind == "false" || kind == "none" || kind == "ellipsis")
    return make(ExprKind::Constant, node, {}, text(node));
  if (kind == "attribute")
    return make(ExprKind::Attribute, node, {expression(field(node, "object"))},
                text(field(node, "attribute")));
  if (kind == "call") return call(node);
  if (kind == "subscript") return sequence(ExprKind::Subscript, node);
  if (kind == "slice") return slice(node);
  if (kind == "unary_operator" || kind == "not_operator") {
    const auto word = kind == "not_operator" ? std::string_view("not") : text(field(node, "operator"));
    return make(ExprKind::Unary, node, {expression(field(node, "argument"))}, word);
  }
  if (kind == "binary_operator" || kind == "boolean_operator")
    return make(ExprKind::Binary, node, {expression(field(node, "left")), expression(field(node, "right"))},
                text(field(node, "operator")));
  if (kind == "comparison_operator") return compare(node);
  if (kind == "conditional_expression") {
    auto* made = sequence(ExprKind::Conditional, node);
    if (made->kids.size() != 3) made->kind = ExprKind::Other;
    return made;
  }
  if (kind == "parenthesized_expression" || kind == "await" || kind == "interpolation" || kind == "type") {
    const auto kids = named(node);
    return kids.empty() ? make(ExprKind::Other, node) : expression(kids.front());
  }
  if (kind == "tuple" || kind == "expression_list" || kind == "pattern_list" || kind == "tuple_pattern")
    return sequence(ExprKind::Tuple, node);
  if (kind == "list" || kind == "set" || kind == "list_pattern") return sequence(ExprKind::List, node);
  if (kind == "dictionary") return dictionary(node);
  if (kind.ends_with("comprehension") || kind == "generator_expression") return comprehension(node);
  if (kind == "lambda") return lambda(node);
  if (kind == "list_splat" || kind == "list_splat_pattern") {
    auto* made = sequence(ExprKind::Starred, node);
    made->text = "*";
    return made;
  }
  if (kind == "dictionary_splat" || kind == "dictionary_splat_pattern") {
    auto* made = sequence(ExprKind::Starred, node);
    made->text = "**";
    return made;
  }
  if (kind == "named_expression")
    return make(ExprKind::Named, node, {expression(field(node, "name")), expression(field(node, "value"))});
  if (kind == "assignment") return expression(field(node, "right"));
  return sequence(ExprKind::Other, node);
}

Expr* Translator::number(TSNode node) {
  auto* made = make(ExprKind::Number, node);
  std::string digits;
  for (char c : text(node))
    if (c != '_') digits += c;
  if (digits.size() > 1 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'b' || digits[1] == 'o')) {
    const int base = digits[1] == 'x' ? 16 : digits[1] == 'b' ? 2 : 8;
    made->number = static_cast<double>(std::strtoull(digits.c_str() + 2, nullptr, base));
  } else {
    std::from_chars(digits.data(), digits.data() + digits.size(), made->number);
  }
  return made;
}

Expr* Translator::string(TSNode node) {
  auto* made = make(ExprKind::String, node);
  for (TSNode child : named(node)) {
    const auto kind = type(child);
    if (kind == "string_content") {
      if (made->text.empty()) made->text = text(child);
      for (TSNode part : named(child))
        if (type(part) == "interpolation") made->kids.push_back(expression(part));
    } else if (kind == "interpolation") {
      made->kids.push_back(expression(child));
    } else if (kind == "string") {
      Expr* part = string(child);
      if (made->text.empty()) made->text = part->text;
      made->kids.insert(made->kids.end(), part->kids.begin(), part->kids.end());
    }
  }
  return made;
}

Expr* Translator::call(TSNode node) {
  auto* made = make(ExprKind::Call, node, {expression(field(node, "function"))});
  const TSNode arguments = field(node, "arguments");
  if (ts_node_is_null(arguments)) return made;
  if (type(arguments) == "generator_expression") {
    made->kids.push_back(expression(arguments));
    return made;
  }
  for (TSNode child : named(arguments)) {
    if (type(child) == "keyword_argument")
      made->keywords.emplace_back(text(field(child, "name")), expression(field(child, "value")));
    else
      made->kids.push_back(expression(child));
  }
  return made;
}

Expr* Translator::compare(TSNode node) {
  // Operands are named children and operators the unnamed ones between them ("not in", "is not" are one
  // token).
  std::vector<TSNode> operands;
  std::vector<std::string_view> operators;
  if (ts_node_child_count(node) > 64) return make(ExprKind::Other, node);  // reaching child i costs i
  for (std::uint32_t i = 0; i < ts_node_child_count(node); ++i) {
    TSNode child = ts_node_child(node, i);
    if (ts_node_is_named(child)) {
      if (type(child) != "comment") operands.push_back(child);
    } else {
      operators.push_back(type(child));
    }
  }
  Expr* whole = nullptr;
  for (std::size_t i = 0; i < operators.size() && i + 1 < operands.size(); ++i) {
    Expr* part =
        make(ExprKind::Compare, node, {expression(operands[i]), expression(operands[i + 1])}, operators[i]);
    whole = whole ? make(ExprKind::Binary, node, {whole, part}, "and") : part;
  }
  return whole ? whole : make(ExprKind::Other, node);
}

Expr* Translator::slice(TSNode node) {
  auto* made = make(ExprKind::Slice, node, {nullptr, nullptr, nullptr});
  std::size_t place = 0;
  for (std::uint32_t i = 0; i < ts_node_child_count(node) && place < 3; ++i) {
    TSNode child = ts_node_child(node, i);
    if (ts_node_is_named(child))
      made->kids[place] = expression(child);
    else
      ++place;
  }
  return made;
}

Expr* Translator::dictionary(TSNode node) {
  auto* made = make(ExprKind::Dict, node);
  for (TSNode child : named(node)) {
    if (type(child) == "pair") {
      made->kids.push_back(expression(field(child, "key")));
      made->kids.push_back(expression(field(child, "value")));
    } else {
      made->kids.push_back(nullptr);
      made->kids.push_back(expression(child));
    }
  }
  return made;
}

Expr* Translator::comprehension(TSNode node) {
  auto* made = make(ExprKind::Comprehension, node);
  for (TSNode child : named(node)) {
    if (type(child) == "for_in_clause") {
      made->kids.push_back(expression(field(child, "left")));
      made->kids.push_back(expression(field(child, "right")));
      made->kids.push_back(nullptr);
    } else if (type(child) == "if_clause") {
      const auto parts = named(child);
      if (made->kids.size() >= 4 && !parts.empty()) made->kids.back() = expression(parts.front());
    } else if (made->kids.empty()) {
      if (type(child) == "pair")
        made->kids.push_back(make(ExprKind::Tuple, child,
                                  {expression(field(child, "key")), expression(field(child, "value"))}));
      else
        made->kids.push_back(expression(child));
    }
  }
  if (made->kids.size() < 4) made->kind = ExprKind::Other;
  return made;
}

Expr* Translator::lambda(TSNode node) {
  auto* made = make(ExprKind::Lambda, node, {expression(field(node, "body"))});
  const TSNode parameters = field(node, "parameters");
  if (!ts_node_is_null(parameters))
    for (TSNode child : named(parameters)) {
      TSNode name = type(child) == "default_parameter" ? field(child, "name") : child;
      made->names.push_back(text(name));
    }
  return made;
}

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
  for (TSNode child : named(node)) {
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

}  // namespace

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
