// Counts of tokens that a loss is divided by.
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

// Divisions of the loss that goes backward: each as the expression a / b.
std::vector<const Expr*> loss_divisions(const Module& module) {
  std::vector<const Expr*> found;
  const auto take = [&](const Expr* part) {
    if (part && part->kind == ExprKind::Binary && part->text == "/" && part->kids[0] && part->kids[1] &&
        contains_any(lower(part->kids[0]->source), {"loss", "nll"}))
      found.push_back(part);
  };
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::Assign && statement->targets.size() == 1 && statement->value &&
        !statement->value->kids.empty() && statement->value->kids[0] &&
        statement->value->kids[0]->source == statement->targets[0]->source)
      take(statement->value);
  });
  each_expression_of(module.body, [&](const Expr* call) {
    if (!is_call_of(call, {"backward"})) return;
    for (std::size_t i = 1; i < call->kids.size(); ++i) take(call->kids[i]);
    const Expr* on = call->kids[0]->kids.empty() ? nullptr : call->kids[0]->kids[0];
    take(on);
    if (on && is_call_of(on, {"scale"}) && on->kids.size() > 1) take(on->kids[1]);
  });
  return found;
}

std::set<std::string_view> loss_divisors(const Module& module) {
  std::set<std::string_view> names;
  for (const Expr* division : loss_divisions(module)) names.insert(division->kids[1]->source);
  return names;
}

}  // namespace

// A mean over tokens that is divided by the number of tokens once more: `loss = out.loss` of a model that was
// given labels, or a cross entropy without a reduction of its own.
void judge_mean_by_count(const Module& module, const Scan& scan, Judgement& out) {
  if (scan.mentions("num_items_in_batch") || scan.mentions("'sum'") || scan.mentions("\"sum\"")) return;
  std::set<std::string_view> outputs, means, counts, others;
  const auto counts_tokens = [](const Expr* value) {
    return contains_any(value->source, {".sum("}) && contains_any(value->source, {"!=", ".ne(", "mask"}) &&
           !contains_any(lower(value->source), {"loss"});
  };
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->targets.size() != 1 || !statement->value) return;
    const auto name = statement->targets[0]->source;
    const Expr* value = statement->value;
    if (statement->kind == StmtKind::AugAssign) others.insert(name);
    if (statement->kind != StmtKind::Assign) return;
    bool labelled = false, reduces = false;
    for (const auto& [keyword, given] : value->keywords) {
      labelled = labelled || keyword == "labels";
      reduces = reduces || keyword == "reduction";
    }
    const bool itself = value->kind == ExprKind::Binary && value->text == "/" && value->kids[0] &&
                        value->kids[0]->source == name;
    if (value->kind == ExprKind::Call && labelled)
      outputs.insert(name);
    else if (value->kind == ExprKind::Attribute && value->text == "loss" && value->kids[0] &&
             outputs.count(value->kids[0]->source))
      means.insert(name);
    else if (is_call_of(value, {"cross_entropy"}) && !reduces)
      means.insert(name);
    else if (counts_tokens(value))
      counts.insert(name);
    else if (!itself)
      others.insert(name);
  });
  for (const Expr* division : loss_divisions(module)) {
    const Expr *above = division->kids[0], *below = division->kids[1];
    const bool mean = (means.count(above->source) && !others.count(above->source)) ||
                      (above->kind == ExprKind::Attribute && above->text == "loss" && above->kids[0] &&
                       outputs.count(above->kids[0]->source));
    const bool count = counts.count(below->source) && !others.count(below->source);
    if (!mean || !count) continue;
    add_once(out, "double_division", division->line);
    out.findings.back().what = "a mean over tokens is divided by the number of tokens once more";
    return;
  }
}

// The divisor of a summed token loss counts labels that the causal shift leaves out, or padding.
void judge_counts(const Module& module, const Scan& scan, Judgement& out) {
  const bool shifts = scan.mentions("[..., 1:]") || scan.mentions("[:, 1:]") || scan.mentions("shift_labels");
  const bool sums = scan.mentions("reduction=\"sum\"") || scan.mentions("reduction='sum'") ||
                    scan.mentions("reduction=\"none\"") || scan.mentions("reduction='none'");
  if (!shifts || !sums) return;
  std::set<std::string_view> shifted;  // names that already are shifted labels
  each_statement(module.body, [&](const Stmt* statement) {
    if (statement->kind == StmtKind::Assign && statement->value && statement->targets.size() == 1 &&
        contains_any(statement->value->source, {"1:]"}))
      shifted.insert(statement->targets[0]->source);
  });
  const std::set<std::string_view> divisors = loss_divisors(module);
  each_statement(module.body, [&](const Stmt* statement) {
    if (!statement->value || (statement->kind != StmtKind::Assign && statement->kind != StmtKind::AugAssign))
      return;
    if (statement->targets.empty() ||
        (!names_count(statement->targets[0]->source) && !divisors.count(statement->targets[0]->source)))
      return;
    each_expression(statement->value, [&](const Expr* part) {
      if (!is_call_of(part, {"sum", "numel", "count_nonzero"})) return;
      const auto text = part->source;
      const bool counts_labels =
          contains_any(text, {"-100", "ignore_index"}) && contains_any(lower(text), {"label", "target"});
      const bool counts_all = contains_any(lower(text), {"attention_mask", "input_ids.numel", "labels.numel",
                                                         "labels\"].numel"}) &&
                              scan.mentions("-100");
      if (!counts_labels && !counts_all) return;
      if (contains_any(text, {"1:]", "shift"})) return;
      for (const auto name : shifted)
        if (text.find(name) != std::string_view::npos && name.size() > 2 &&
            name.find("shift") != std::string_view::npos)
          return;
      // A tensor that was put in the place of its own shifted form.
      for (const auto name : shifted)
        if (contains_any(text, {"\"" + std::string(name) + "\"", "'" + std::string(name) + "'"}) &&
            name.size() > 6)
          return;
      for (const auto name : shifted) {
        const auto at = text.find(name);
        if (at != std::string_view::npos && (at == 0 || text[at - 1] == '(')) return;
      }
      add_once(out, "count_not_matching_trained_tokens", part->line);
    });
  });
}

}  // namespace batchwright::check
