#pragma once

#include <map>
#include <string>
#include <string_view>

#include "check/syntax.h"

namespace batchwright::check {

// What an option of the program is when nobody sets it.
struct OptionDefault {
  const Expr* written = nullptr;  // a constant, number or string; nullptr: `flag` says it
  bool flag = false;
};

// The options of a file by name: argparse, click, typer and absl declarations, fields of dataclasses and
// other settings objects, defaults of parameters. An option that is given two different defaults has none.
class Options {
 public:
  explicit Options(const Module& module);
  // nullptr when the file does not tell.
  const OptionDefault* find(std::string_view name) const;

 private:
  void statement(const Stmt* statement);
  void call(const Expr* call);
  void declare(const Expr* call);  // add_argument("--name", ...), @click.option("--name/--no-name", ...)
  void entries(const Expr* dict);
  void note(std::string_view name, const Expr* written);
  void note_flag(std::string_view name, bool flag);
  void add(std::string name, OptionDefault found);

  struct Known {
    OptionDefault value;
    bool ambiguous = false;
  };
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace batchwright::check
