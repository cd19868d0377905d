// What to write instead: the few lines of a loop that a finding is mended by.
#include "check/corrections.h"

#include <algorithm>
#include <optional>

#include "check/roles.h"
#include "check/source_spots.h"
#include "check/walk.h"

namespace batchwright::check {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// "a + b" has to be bracketed before it is divided.
std::string divided(const Expr* loss, std::string_view by) {
  const bool sum = loss->kind == ExprKind::Binary || loss->kind == ExprKind::Conditional;
  return sum ? "(" + std::string(loss->source) + ") / " + std::string(by)
             : std::string(loss->source) + " / " + std::string(by);
}

class Corrector : private SourceSpots {
 public:
  using SourceSpots::SourceSpots;

  std::vector<Edits> of(const Finding& finding) {
    const Spot* at = simple_at(finding.line);
    std::vector<Edits> ways;
    const auto add = [&](std::optional<Edits> way) {
      if (way && !way->empty()) ways.push_back(std::move(*way));
    };
    if (finding.kind == "no_division") add(divide_backward(at));
    if (finding.kind == "off_by_one_boundary") add(shift_boundary(at));
    if (finding.kind == "tail_leak") add(flush_tail(at));
    if (finding.kind == "zero_grad_in_window") add(move_behind_step(at));
    if (finding.kind == "sched_per_micro_step") add(move_behind_step(at));
    if (finding.kind == "missing_zero_grad") add(zero_behind_step(at));
    if (finding.kind == "clip_before_unscale") add(unscale_before(at));
    if (finding.kind == "clip_per_micro_step") add(move_before_step(at));
    if (finding.kind == "divide_after_backward") add(move_before_backward(at));
    if (finding.kind == "double_division") add(drop_division(at));
    if (finding.kind == "sched_units") add(count_steps(at));
    if (finding.kind == "log_factor") add(multiply_back(at, finding));
    return ways;
  }

 private:
  std::optional<Edits> divide_backward(const Spot* at) const {
    if (!at) return std::nullopt;
    const std::string n = window_text(*at);
    const Expr* call = n.empty() ? nullptr : call_in(at->statement, "backward");
    if (!call) call = n.empty() ? nullptr : call_in(at->statement, "manual_backward");
    if (!call) return std::nullopt;
    const Expr* loss = call->kids.size() > 1 ? call->kids[1] : nullptr;
    for (const auto& [name, value] : call->keywords)
      if (name == "loss") loss = value;
    if (loss && (role_of_name(receiver(call)) != Role::None || called_name(call) == "manual_backward" ||
                 receiver(call).find("loss") == std::string_view::npos))
      return replace(loss, divided(loss, n));
    const Expr* object = callee(call)->kids.empty() ? nullptr : callee(call)->kids[0];
    if (!object) return std::nullopt;
    if (object->kind == ExprKind::Call && object->kids.size() > 1)  // scaler.scale(loss).backward()
      return replace(object->kids[1], divided(object->kids[1], n));
    return replace(object, "(" + std::string(object->source) + " / " + n + ")");
  }

  std::optional<Edits> shift_boundary(const Spot* at) const {
    const Expr* test = at ? boundary_of(*at) : nullptr;
    if (!test) return std::nullopt;
    const std::string_view counter = trim(test->kids[0]->source);
    const bool simple = test->kids[0]->kind == ExprKind::Name || test->kids[0]->kind == ExprKind::Attribute;
    const std::string one_more =
        simple ? "(" + std::string(counter) + " + 1)" : "((" + std::string(counter) + ") + 1)";
    return replace(test, one_more + " % " + std::string(test->kids[1]->source));
  }

  std::optional<Edits> flush_tail(const Spot* at) const {
    const Expr* test = at ? boundary_of(*at) : nullptr;
    const Stmt* loop = at ? loop_of(*at) : nullptr;
    if (!test || !loop || loop->kind != StmtKind::For || !loop->value) return std::nullopt;
    const Expr* loader = nullptr;  // the thing that enumerate, tqdm and the like were given
    each_expression(loop->value, [&](const Expr* part) {
      if (part->kind == ExprKind::Call && part->kids.size() > 1 && part->kids[1] &&
          (part->kids[1]->kind == ExprKind::Name || part->kids[1]->kind == ExprKind::Attribute))
        loader = part->kids[1];
    });
    const Expr* condition = nullptr;
    each_expression_of({const_cast<Stmt*>(loop)}, [&](const Expr* part) {
      if (part->kind == ExprKind::Compare && part->text == "==" && part->kids[0] == test) condition = part;
    });
    if (!loader || !condition) return std::nullopt;
    std::string_view counter = trim(test->kids[0]->source);
    if (counter.starts_with("(") && counter.ends_with(")")) counter = counter.substr(1, counter.size() - 2);
    return replace(condition, std::string(condition->source) + " or " + std::string(counter) + " == len(" +
                                  std::string(loader->source) + ")");
  }

  bool zeroes_behind(const Stmt* step) const {
    for (const Spot& spot : spots_)
      if (spot.statement->kind == StmtKind::Expression && call_in(spot.statement, "zero_grad") &&
          spot.statement->line > step->last_line && spot.statement->line <= step->last_line + 4 &&
          indent(spot.statement) == indent(step))
        return true;
    return false;
  }

  std::optional<Edits> move_behind_step(const Spot* at) const {
    if (!at || at->statement->kind != StmtKind::Expression || is_alone(*at)) return std::nullopt;
    const Stmt* step = step_near(at->statement->line);
    if (!step) return std::nullopt;
    if (call_in(at->statement, "zero_grad") && zeroes_behind(step)) {
      Edits edits;
      for (int number = at->statement->line; number <= at->statement->last_line; ++number)
        edits.push_back({number, std::string(line(number)), {}});
      return edits;
    }
    return move(at->statement, step, true);
  }

  std::optional<Edits> move_before_step(const Spot* at) const {
    if (!at || is_alone(*at)) return std::nullopt;
    const Stmt* step = step_near(at->statement->line);
    return step ? move(at->statement, step, false) : std::nullopt;
  }

  std::optional<Edits> zero_behind_step(const Spot* at) const {
    if (!at) return std::nullopt;
    const Stmt* bare = step_near(at->statement->line, false);
    const Stmt* step = step_near(at->statement->line);
    const Expr* call = bare ? call_in(bare, "step") : nullptr;
    if (!call || optimizer_of(call).empty()) return std::nullopt;
    return insert({}, step, true, {indent(step) + std::string(optimizer_of(call)) + ".zero_grad()"});
  }

  std::optional<Edits> unscale_before(const Spot* at) const {
    const Stmt* step = at ? step_near(at->statement->line, false) : nullptr;
    const Expr* call = step ? call_in(step, "step") : nullptr;
    for (const Spot& spot : spots_)  // it stands there, but too late
      if (step && spot.statement->line > at->statement->line && spot.statement->line < step->line &&
          spot.statement->kind == StmtKind::Expression && call_in(spot.statement, "unscale_") &&
          !is_alone(*at))
        return move(at->statement, spot.statement, true);
    if (!call || call->kids.size() != 2 || role_of_name(receiver(call)) != Role::Scaler) return std::nullopt;
    return insert({}, at->statement, false,
                  {indent(at->statement) + std::string(receiver(call)) + ".unscale_(" +
                   std::string(call->kids[1]->source) + ")"});
  }

  std::optional<Edits> move_before_backward(const Spot* at) const {
    if (!at || is_alone(*at)) return std::nullopt;
    const Spot* found = nullptr;
    for (const Spot& spot : spots_)
      if (spot.statement->line < at->statement->line && spot.statement->kind == StmtKind::Expression &&
          call_in(spot.statement, "backward") && function_of(spot) == function_of(*at))
        found = &spot;
    if (!found) return std::nullopt;
    const Stmt* to = found->statement;
    for (std::size_t i = found->around.size(); i-- > 0;) {
      const Stmt* parent = found->around[i];
      const bool holds_both = std::find(at->around.begin(), at->around.end(), parent) != at->around.end();
      if (holds_both || (parent->kind != StmtKind::If && parent->kind != StmtKind::With)) break;
      to = parent;
    }
    return move(at->statement, to, false);
  }

  std::optional<Edits> drop_division(const Spot* at) const {
    if (!at) return std::nullopt;
    std::optional<Edits> way;
    each_own_expression(at->statement, [&](const Expr* part) {
      if (!way && part->kind == ExprKind::Binary && part->text == "/" &&
          names_accumulation(part->kids[1]->source))
        way = replace(part, std::string(part->kids[0]->source));
    });
    if (way) return way;
    for (const Spot& spot : spots_) {
      const Stmt* one = spot.statement;
      if (one->targets.size() != 1 || !one->value || function_of(spot) != function_of(*at)) continue;
      const bool divides =
          one->kind == StmtKind::AugAssign && one->text == "/" && names_accumulation(one->value->source);
      const bool assigns = one->kind == StmtKind::Assign && one->value->kind == ExprKind::Binary &&
                           one->value->text == "/" &&
                           one->value->kids[0]->source == one->targets[0]->source &&
                           names_accumulation(one->value->kids[1]->source);
      if ((!divides && !assigns) || is_alone(spot)) continue;
      return Edits{{one->line, std::string(line(one->line)), {}}};
    }
    return std::nullopt;
  }

  // len(loader), on the scheduler's line or where a name on it was assigned, becomes a count of steps.
  std::optional<Edits> count_steps(const Spot* at) const {
    if (!at) return std::nullopt;
    std::string n;
    for (const Spot& spot : spots_)
      if (n.empty() && spot.statement->kind == StmtKind::Expression && call_in(spot.statement, "step"))
        n = window_text(spot);
    if (n.empty()) return std::nullopt;
    std::vector<const Expr*> lengths;
    const auto gather = [&](const Stmt* statement) {
      each_own_expression(statement, [&](const Expr* part) {
        if (part->kind == ExprKind::Call && called_name(part) == "len" && part->kids.size() == 2)
          lengths.push_back(part);
      });
    };
    gather(at->statement);
    if (lengths.empty())
      each_own_expression(at->statement, [&](const Expr* name) {
        if (name->kind != ExprKind::Name) return;
        for (const Spot& spot : spots_)
          if (spot.statement->kind == StmtKind::Assign && spot.statement->targets.size() == 1 &&
              spot.statement->targets[0]->source == name->source && lengths.empty())
            gather(spot.statement);
      });
    if (lengths.size() != 1) return std::nullopt;
    return replace(lengths[0], "(" + std::string(lengths[0]->source) + " // " + n + ")");
  }

  // The one loss.item() of the function that is shown divided or multiplied.
  std::optional<Edits> multiply_back(const Spot* at, const Finding& finding) const {
    const std::string n = at ? window_text(*at) : std::string();
    if (n.empty() || finding.consequence.find("1/") == std::string::npos) return std::nullopt;
    const Stmt* function = function_of(*at);
    const Expr* item = nullptr;
    for (const Spot& spot : spots_) {
      if (function_of(spot) != function) continue;
      each_own_expression(spot.statement, [&](const Expr* part) {
        if (part->kind != ExprKind::Call || called_name(part) != "item" ||
            receiver(part).find("loss") == std::string_view::npos)
          return;
        if (!item || spot.statement == at->statement) item = part;
      });
    }
    return item ? replace(item, std::string(item->source) + " * " + n) : std::nullopt;
  }
};

}  // namespace

std::vector<std::vector<Edit>> corrections_of(const Finding& finding, const Module& module,
                                              const Scan& scan) {
  if (finding.line < 1) return {};
  return Corrector(module, scan).of(finding);
}

std::string apply_edits(std::string_view source, const std::vector<Edit>& edits) {
  std::string text;
  int number = 1;
  for (std::size_t start = 0; start <= source.size(); ++number) {
    const std::size_t end = std::min(source.find('\n', start), source.size());
    const auto edit =
        std::find_if(edits.begin(), edits.end(), [&](const Edit& e) { return e.line == number; });
    if (edit == edits.end()) {
      text += source.substr(start, end - start);
      if (end < source.size()) text += '\n';
    } else {
      for (const std::string& line : edit->lines) text += line + '\n';
    }
    start = end + 1;
  }
  return text;
}

}  // namespace batchwright::check
