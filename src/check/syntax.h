#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright::check {

struct Stmt;

enum class ExprKind {
  Name,         // text
  Number,       // number
  String,       // text: the characters between the quotes; kids: interpolated expressions of an f-string
  Constant,     // text: True, False, None or Ellipsis
  Attribute,    // kids[0].text
  Call,         // kids[0](args): kids[1..] positional and Starred, keywords beside them
  Subscript,    // kids[0][kids[1], ...]
  Slice,        // up to three kids, nullptr where left out
  Unary,        // text is "-", "+", "~" or "not"
  Binary,       // text is the operator, also "and" and "or"
  Compare,      // kids[0] text kids[1]; a chain is a conjunction of these
  Conditional,  // kids: then, test, else
  Tuple,
  List,           // also sets
  Dict,           // kids: key, value, key, value; a nullptr key is **value
  Comprehension,  // kids[0]: element, then (target, iterable, condition or nullptr) for each clause
  Lambda,         // kids[0]: body; names: parameters
  Starred,        // *kids[0] or **kids[0], by text
  Named,          // kids[0] := kids[1]
  Yield,          // kids[0] when there is a value
  Other,          // anything else; kids are its parts
};

struct Expr {
  ExprKind kind = ExprKind::Other;
  int line = 0;
  double number = 0;
  std::string_view text;
  std::vector<Expr*> kids;
  std::vector<std::pair<std::string_view, Expr*>> keywords;
  std::vector<std::string_view> names;
  std::string_view source;  // the whole expression as written
};

enum class StmtKind {
  Expression,
  Assign,
  AugAssign,
  If,
  For,
  While,
  With,
  Try,
  Function,
  Class,
  Return,
  Break,
  Continue,
  Raise,
  Import,
  Global,
  Other
};

struct Parameter {
  std::string_view name;
  Expr* fallback = nullptr;
  bool star = false;  // *args or **kwargs
};

struct Stmt {
  StmtKind kind = StmtKind::Other;
  int line = 0, last_line = 0;
  std::string_view text;            // Function, Class: its name. AugAssign: the operator without "="
  Expr* value = nullptr;            // Expression, Return, Assign, AugAssign; For: iterable; If, While: test
  std::vector<Expr*> targets;       // Assign (several for a = b = c), AugAssign, For
  std::vector<Stmt*> body, orelse;  // Try: orelse holds else and finally, one after the other
  std::vector<Stmt*> handlers;      // Try: the bodies of all except clauses
  std::vector<std::pair<Expr*, Expr*>> items;                     // With: context, target or nullptr
  std::vector<Parameter> parameters;                              // Function
  std::vector<Expr*> decorators;                                  // Function, Class
  std::vector<Expr*> bases;                                       // Class
  std::vector<std::pair<std::string_view, std::string>> imports;  // local name, dotted name
};

// A parsed file. Owns every node; views point into `source`, which the caller keeps alive.
struct Module {
  std::vector<Stmt*> body;
  bool has_errors = false;  // the parser had to skip something
  bool incomplete = false;  // too deep, too large or too slow to be read as a whole
  std::deque<Expr> expressions;
  std::deque<Stmt> statements;
};

// Parses Python source of any bytes. Syntax errors leave holes (has_errors), never throw. Nesting beyond 120
// levels and work beyond a few seconds are cut off (incomplete).
Module parse_python(std::string_view source);

}  // namespace batchwright::check
