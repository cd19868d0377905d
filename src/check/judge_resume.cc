// Where a resumed training goes on: counters of optimizer steps against micro-batches.
#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "check/judge.h"
#include "check/kinds.h"
#include "check/roles.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

// The position to resume at, computed from a counter of optimizer steps alone, and compared with the index of
// a micro-batch.
void judge_skipped(const Module& module, const Scan& scan, const std::set<std::string>& counters,
                   Judgement& out) {
  std::set<std::string> positions, others;  // names computed from the counter only, or from anything else too
  for (int pass = 0; pass < 2; ++pass)
    each_statement(module.body, [&](const Stmt* statement) {
      if (statement->kind != StmtKind::Assign || !statement->value || statement->targets.size() != 1) return;
      const Expr* value = statement->value;
      const std::string name(statement->targets[0]->source);
      if (statement->targets[0]->kind != ExprKind::Name || counters.count(name)) return;
      if (value->kind == ExprKind::Binary && value->text == "%" && value->kids[0] && value->kids[1] &&
          contains_any(lower(value->kids[1]->source), {"update", "optim"}))
        value = value->kids[0];
      const std::string from(value->source);
      if (counters.count(from) || positions.count(from))
        positions.insert(name);
      else if (value->kind != ExprKind::Number && value->text != "None")
        others.insert(name);
    });
  const auto counts_updates = [&](const Expr* position) {
    const std::string name(position->source);
    return positions.count(name) && !others.count(name);
  };
  each_expression_of(module.body, [&](const Expr* call) {
    if (is_call_of(call, {"skip_first_batches"}) && call->kids.size() > 2 && call->kids[2] &&
        counts_updates(call->kids[2]))
      add_once(out, "resume_units", call->line);
  });
  each_statement(module.body, [&](const Stmt* loop) {
    if (loop->kind != StmtKind::For || loop->targets.empty() || !(scan.effects(loop->body) & kDoesBackward) ||
        !loop->value || !contains_any(loop->value->source, {"enumerate("}))
      return;
    const Expr* index = loop->targets[0]->kids.empty() ? nullptr : loop->targets[0]->kids[0];
    for (const Stmt* statement : loop->body) {
      if (!index || statement->kind != StmtKind::If || statement->body.empty() ||
          statement->body.back()->kind != StmtKind::Continue)
        continue;
      each_expression(statement->value, [&](const Expr* part) {
        if (part->kind != ExprKind::Compare || part->text != "<" || part->kids[0]->source != index->source)
          return;
        if (counts_updates(part->kids[1])) add_once(out, "resume_units", part->line);
      });
    }
  });
}

}  // namespace

// A counter of optimizer steps measured against a number of micro-batches.
void judge_resuming(const Module& module, const Scan& scan, Judgement& out) {
  std::set<std::string> updates, micro;  // counters that advance with the step, or with every micro-batch
  std::set<std::string> lengths;         // names that hold a bare len(loader)
  std::function<void(const std::vector<Stmt*>&, bool)> walk = [&](const std::vector<Stmt*>& block,
                                                                  bool boundary) {
    for (const Stmt* statement : block) {
      const bool guards =
          statement->kind == StmtKind::If && ((scan.effects(statement->body) & kDoesStep) ||
                                              contains_any(statement->value->source, {"sync_gradients"}));
      if (statement->kind == StmtKind::AugAssign && statement->text == "+" && !statement->targets.empty())
        (boundary ? updates : micro).insert(std::string(last_part(statement->targets[0]->source)));
      if (statement->kind == StmtKind::Assign && statement->value && statement->targets.size() == 1 &&
          is_call_of(statement->value, {"len"}) &&
          contains_any(lower(statement->value->source), {"loader", "_dl", "batches"}))
        lengths.insert(std::string(statement->targets[0]->source));
      walk(statement->body, boundary || guards);
      walk(statement->orelse, boundary);
    }
  };
  walk(module.body, false);
  std::set<std::string> aliases = updates;
  for (const auto& name : micro) aliases.erase(name);
  const auto direct = aliases;
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind != StmtKind::Assign || !statement->value || statement->targets.size() != 1) return;
    if (contains_any(statement->value->source, {"*"})) return;
    for (const auto& name : direct) {
      const auto text = std::string(statement->value->source);
      if (contains_any(text,
                       {"[\"" + name + "\"]", "['" + name + "']", "(\"" + name + "\"", "('" + name + "'"}))
        aliases.insert(std::string(last_part(statement->targets[0]->source)));
    }
  });
  judge_skipped(module, scan, direct, out);
  each_expression_of(module.body, [&](const Expr* part) {
    const bool divides = (part->kind == ExprKind::Binary && (part->text == "//" || part->text == "%")) ||
                         is_call_of(part, {"divmod"});
    if (!divides) return;
    const bool call = part->kind == ExprKind::Call;
    if (call && part->kids.size() < 3) return;
    const Expr* left = part->kids[call ? 1 : 0];
    const Expr* right = part->kids[call ? 2 : 1];
    if (!left || !right || !aliases.count(std::string(last_part(left->source)))) return;
    if (left->kind != ExprKind::Name && left->kind != ExprKind::Attribute &&
        left->kind != ExprKind::Subscript)
      return;
    const bool bare = (is_call_of(right, {"len"}) &&
                       contains_any(lower(right->source), {"loader", "_dl", "batches", "dataloader"})) ||
                      lengths.count(std::string(right->source));
    if (bare) add_once(out, "resume_units", part->line);
  });
}

}  // namespace batchwright::check
