#include "cli/print_explanation.h"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "base/table.h"
#include "base/units.h"

namespace batchwright::cli {
namespace {

std::string with_interval(const std::optional<double>& value, const std::optional<Interval>& interval) {
  if (!value) return "not known";
  if (!interval || !std::isfinite(interval->low) || !std::isfinite(interval->high))
    return format_seconds(*value);
  return format_seconds_interval(*value, interval->low, interval->high);
}

std::string parts_table(const tune::Explanation& explanation) {
  Table table({{"part", Align::Left}, {"measured"}});
  table.add_row({"fixed cost of a micro-batch",
                 with_interval(explanation.fixed_seconds_per_micro_step, explanation.fixed_interval)});
  table.add_row(
      {"cost of a token", with_interval(explanation.seconds_per_token, explanation.token_interval)});
  table.add_row({"optimizer step", with_interval(explanation.seconds_per_step, std::nullopt)});
  return table.to_string();
}

std::string shares_table(const tune::Explanation& explanation, const run::Split& split) {
  Table table({{fmt::format("share of a step of {}", run::to_string(split)), Align::Left}, {"share"}});
  for (const auto& [name, share] : explanation.shares) table.add_row({name, format_percent(share)});
  return table.to_string();
}

std::string phases_table(const tune::Explanation& explanation) {
  Table table({{"phase", Align::Left}, {"a micro-batch more costs"}, {"and a step"}});
  for (const auto& cost : explanation.phase_costs) {
    if (cost.seconds_per_micro_step == 0 && cost.seconds_per_step == 0) continue;
    table.add_row(
        {cost.phase, format_seconds(cost.seconds_per_micro_step), format_seconds(cost.seconds_per_step)});
  }
  return table.to_string();
}

std::string splits_table(const tune::Explanation& explanation) {
  Table table({{"split", Align::Left},
               {"left unexplained"},
               {"cost of a token, relative"},
               {"matrix efficiency"},
               {"device idle"}});
  for (std::size_t i = 0; i < explanation.residuals.size(); ++i) {
    const auto& residual = explanation.residuals[i];
    const auto& [row_cost, efficiency, idle] =
        std::tie(explanation.row_cost, explanation.matrix_efficiency, explanation.device_idle);
    table.add_row({run::to_string(residual.split),
                   with_interval(residual.mid, Interval{residual.mid, residual.low, residual.high}),
                   i < row_cost.size() ? fmt::format("{:.2f}", row_cost[i].relative) : "",
                   i < efficiency.size() ? fmt::format("{:.2f}", efficiency[i].efficiency) : "",
                   i < idle.size() ? format_percent(idle[i].share) : ""});
  }
  return table.to_string();
}

}  // namespace

std::string describe(const tune::Explanation& explanation, const std::optional<run::Split>& recommended) {
  std::string text;
  if (!explanation.sentence.empty()) text += explanation.sentence + "\n\n";
  text += parts_table(explanation);
  if (!explanation.shares.empty() && recommended) text += "\n" + shares_table(explanation, *recommended);
  if (!explanation.phase_costs.empty()) text += "\n" + phases_table(explanation);
  if (!explanation.residuals.empty()) text += "\n" + splits_table(explanation);
  for (const auto& part : explanation.not_separable) text += fmt::format("\n{}: {}.", part.part, part.reason);
  if (!explanation.not_separable.empty()) text += "\n";
  const std::string recommendations = describe_recommendations(explanation);
  return recommendations.empty() ? text : text + "\n" + recommendations;
}

std::string describe_recommendations(const tune::Explanation& explanation) {
  std::string text;
  for (const auto& advice : explanation.recommendations) {
    text += fmt::format("{} takes {} of a step ({}): {}.\n", advice.cause, format_seconds(advice.seconds),
                        format_percent(advice.share), advice.change);
  }
  return text;
}

}  // namespace batchwright::cli
