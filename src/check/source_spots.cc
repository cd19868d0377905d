// Where statements stand in a file, and its lines changed one by one.
#include "check/source_spots.h"

#include <algorithm>

#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

bool is_loop(const Stmt* statement) {
  return statement->kind == StmtKind::For || statement->kind == StmtKind::While;
}

}  // namespace

SourceSpots::SourceSpots(const Module& module, const Scan& scan) : scan_(scan) {
  std::string_view rest = scan.source();
  while (true) {
    const std::size_t end = rest.find('\n');
    lines_.push_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  std::vector<const Stmt*> around;
  collect(module.body, around);
}

void SourceSpots::collect(const std::vector<Stmt*>& block, std::vector<const Stmt*>& around) {
  for (const Stmt* statement : block) {
    spots_.push_back({statement, around});
    around.push_back(statement);
    collect(statement->body, around);
    collect(statement->orelse, around);
    collect(statement->handlers, around);
    around.pop_back();
  }
}

const Spot* SourceSpots::simple_at(int line) const {
  const Spot* found = nullptr;
  for (const Spot& spot : spots_)
    if (spot.statement->line <= line && line <= spot.statement->last_line) found = &spot;
  return found;
}

std::string_view SourceSpots::line(int number) const {
  return number >= 1 && static_cast<std::size_t>(number) <= lines_.size()
             ? lines_[static_cast<std::size_t>(number) - 1]
             : std::string_view{};
}

std::string SourceSpots::indent(const Stmt* statement) const {
  const auto text = line(statement->line);
  return std::string(text.substr(0, std::min(text.find_first_not_of(" \t"), text.size())));
}

std::optional<Edits> SourceSpots::replace(const Expr* expression, const std::string& now) const {
  const auto row = line(expression->line);
  const char* begin = expression->source.data();
  if (begin < row.data() || begin + expression->source.size() > row.data() + row.size()) return std::nullopt;
  const auto at = static_cast<std::size_t>(begin - row.data());
  std::string text(row.substr(0, at));
  text += now;
  text += row.substr(at + expression->source.size());
  return Edits{{expression->line, std::string(row), {std::move(text)}}};
}

std::optional<Edits> SourceSpots::move(const Stmt* moved, const Stmt* to, bool behind) const {
  Edits edits;
  std::vector<std::string> written;
  const std::string old_indent = indent(moved), new_indent = indent(to);
  for (int number = moved->line; number <= moved->last_line; ++number) {
    std::string_view row = line(number);
    edits.push_back({number, std::string(row), {}});
    if (row.starts_with(old_indent)) row.remove_prefix(old_indent.size());
    written.push_back(new_indent + std::string(row));
  }
  return insert(std::move(edits), to, behind, std::move(written));
}

std::optional<Edits> SourceSpots::insert(Edits edits, const Stmt* at, bool behind,
                                         std::vector<std::string> written) const {
  const int number = behind ? at->last_line : at->line;
  for (const Edit& edit : edits)
    if (edit.line == number) return std::nullopt;
  std::string row(line(number));
  written.insert(behind ? written.begin() : written.end(), row);
  edits.push_back({number, std::move(row), std::move(written)});
  std::sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) { return a.line < b.line; });
  return edits;
}

bool SourceSpots::is_alone(const Spot& spot) {
  if (spot.around.empty()) return false;
  const Stmt* parent = spot.around.back();
  for (const auto* block : {&parent->body, &parent->orelse, &parent->handlers})
    for (const Stmt* one : *block)
      if (one == spot.statement) return block->size() == 1;
  return true;
}

const Stmt* SourceSpots::loop_of(const Spot& spot) const {
  for (std::size_t i = spot.around.size(); i-- > 0;)
    if (is_loop(spot.around[i])) return spot.around[i];
  return nullptr;
}

const Stmt* SourceSpots::function_of(const Spot& spot) const {
  for (std::size_t i = spot.around.size(); i-- > 0;)
    if (spot.around[i]->kind == StmtKind::Function) return spot.around[i];
  return nullptr;
}

const Expr* SourceSpots::call_in(const Stmt* statement, std::string_view name) {
  const Expr* found = nullptr;
  each_own_expression(statement, [&](const Expr* part) {
    if (!found && part->kind == ExprKind::Call && called_name(part) == name) found = part;
  });
  return found;
}

std::string_view SourceSpots::optimizer_of(const Expr* step) {
  if (step->kids.size() > 1 && step->kids[1]) return step->kids[1]->source;
  return receiver(step);
}

bool SourceSpots::is_optimizer_step(const Expr* call) const {
  const Role role = role_of_name(receiver(call));
  return role == Role::Optimizer || role == Role::Scaler;
}

const Stmt* SourceSpots::step_near(int number, bool climb) const {
  const Spot* found = nullptr;
  for (const Spot& spot : spots_) {
    if (spot.statement->kind != StmtKind::Expression && spot.statement->kind != StmtKind::Assign) continue;
    const Expr* call = call_in(spot.statement, "step");
    if (!call || !is_optimizer_step(call)) continue;
    if (!found || found->statement->line < number) found = &spot;
  }
  if (!found) return nullptr;
  const Stmt* statement = found->statement;
  for (std::size_t i = found->around.size(); climb && i-- > 0;) {
    const Stmt* parent = found->around[i];
    if (parent->kind != StmtKind::If || (scan_.effects(parent->body) & kDoesBackward) ||
        tests_boundary(parent))
      break;
    statement = parent;
  }
  return statement;
}

bool SourceSpots::tests_boundary(const Stmt* condition) const {
  bool tests = false;
  each_expression(condition->value, [&](const Expr* part) {
    tests = tests || (part->kind == ExprKind::Binary && part->text == "%") ||
            names_accumulation(part->source) || part->text == "sync_gradients" ||
            contains_any(lower(part->source), {"bound", "update", "should_step", "accum", "last"});
  });
  return tests;
}

std::string SourceSpots::window_text(const Spot& spot) const {
  std::string_view found;
  const auto consider = [&](const Expr* text) {
    if (!found.empty() || !text || text->source.size() > 60) return;
    if (names_accumulation(text->source) || scan_.is_window_name(text->source)) found = text->source;
  };
  for (std::size_t i = spot.around.size(); i-- > 0 && found.empty();) {
    const Stmt* outer = spot.around[i];
    if (outer->kind == StmtKind::For && outer->value && called_name(outer->value) == "range" &&
        outer->value->kids.size() == 2)
      consider(outer->value->kids[1]);
    if (!is_loop(outer) && outer->kind != StmtKind::Function) continue;
    each_expression_of({const_cast<Stmt*>(outer)}, [&](const Expr* part) {
      if (part->kind == ExprKind::Binary && part->text == "%") consider(part->kids[1]);
      if (part->kind == ExprKind::Compare) consider(part->kids[1]);
    });
  }
  return std::string(found);
}

const Expr* SourceSpots::boundary_of(const Spot& spot) const {
  const Expr* found = nullptr;
  for (std::size_t i = spot.around.size(); i-- > 0 && !found;) {
    if (!is_loop(spot.around[i]) && spot.around[i]->kind != StmtKind::Function) continue;
    each_expression_of({const_cast<Stmt*>(spot.around[i])}, [&](const Expr* part) {
      if (!found && part->kind == ExprKind::Binary && part->text == "%" && part->kids[1] &&
          (names_accumulation(part->kids[1]->source) || scan_.is_window_name(part->kids[1]->source)))
        found = part;
    });
  }
  return found;
}

}  // namespace batchwright::check
