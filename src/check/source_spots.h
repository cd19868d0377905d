#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/finding.h"
#include "check/scan.h"
#include "check/syntax.h"

namespace batchwright::check {

using Edits = std::vector<Edit>;

// A statement with those around it, outermost first.
struct Spot {
  const Stmt* statement = nullptr;
  std::vector<const Stmt*> around;
};

// The statements of a file by line, and small changes of their lines.
class SourceSpots {
 public:
  SourceSpots(const Module& module, const Scan& scan);

  // The innermost statement on a line, or the one that spans it.
  const Spot* simple_at(int line) const;
  std::string_view line(int number) const;
  std::string indent(const Stmt* statement) const;
  // Writes `now` in place of the expression; only where the expression stands on one line.
  std::optional<Edits> replace(const Expr* expression, const std::string& now) const;
  // The lines of a statement taken away, and written anew before or behind another one, indented as that is.
  std::optional<Edits> move(const Stmt* moved, const Stmt* to, bool behind) const;
  std::optional<Edits> insert(Edits edits, const Stmt* at, bool behind,
                              std::vector<std::string> written) const;
  // Alone in its block, a statement cannot be taken away.
  static bool is_alone(const Spot& spot);
  const Stmt* loop_of(const Spot& spot) const;
  const Stmt* function_of(const Spot& spot) const;
  static const Expr* call_in(const Stmt* statement, std::string_view name);
  // What the optimizer step is called with: "optimizer" of optimizer.step() and of scaler.step(optimizer).
  static std::string_view optimizer_of(const Expr* step);
  bool is_optimizer_step(const Expr* call) const;
  // The step nearest behind a line, or the last one before it; with the conditions on precision around it,
  // but not with the one that decides on the boundary.
  const Stmt* step_near(int number, bool climb = true) const;
  bool tests_boundary(const Stmt* condition) const;
  // N as the loop around writes it: behind a modulus, in a comparison of a count, or as the range of a loop.
  std::string window_text(const Spot& spot) const;
  // The first modulus of N in the loop around the step.
  const Expr* boundary_of(const Spot& spot) const;

 protected:
  const Scan& scan_;
  std::vector<std::string_view> lines_;
  std::vector<Spot> spots_;

 private:
  void collect(const std::vector<Stmt*>& block, std::vector<const Stmt*>& around);
};

}  // namespace batchwright::check
