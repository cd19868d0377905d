#include <charconv>
#include <cstdlib>
#include <string>

#include "check/syntax_translate.h"

namespace batchwright::check {

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
  if (kind == "yield") return sequence(ExprKind::Yield, node);
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

}  // namespace batchwright::check
