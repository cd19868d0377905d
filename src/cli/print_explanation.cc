#include "cli/print_explanation.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <string_view>
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

// The document's keys as people call what they stand for.
std::string in_words(std::string_view key) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kWords = {
      {{"tokens", "computing real tokens"},
       {"padding", "computing padding"},
       {"fixed_per_micro_step", "fixed cost of its micro-batches"},
       {"fixed_seconds_per_micro_step", "fixed cost of a micro-batch"},
       {"seconds_per_token", "cost of a token"},
       {"seconds_per_step", "optimizer step"},
       {"matrix_efficiency", "matrix efficiency"},
       {"optimizer", "the optimizer"},
       {"input", "waiting for data"},
       {"collective", "sums over devices"}}};
  for (const auto& [known, words] : kWords) {
    if (key == known) return std::string(words);
  }
  return std::string(key == "residual" ? "left unexplained" : key);
}

std::string shares_table(const tune::Explanation& explanation, const run::Split& split) {
  constexpr double kLeast = 0.0005;  // printed as 0.0 %
  Table table({{fmt::format("share of a step of {}", run::to_string(split)), Align::Left}, {"share"}});
  for (const auto& [name, share] : explanation.shares) {
    if (std::abs(share) >= kLeast) table.add_row({in_words(name), format_percent(share)});
  }
  return table.to_string();
}

std::string phases_table(const tune::Explanation& explanation) {
  constexpr double kLeast = 0.001;  // of all phases: below the noise of any clock here
  const auto size = [](const auto& cost) {
    return std::abs(cost.seconds_per_micro_step) + std::abs(cost.seconds_per_step);
  };
  double all = 0;
  for (const auto& cost : explanation.phase_costs) all += size(cost);
  Table table({{"phase", Align::Left}, {"per micro-batch"}, {"per step, however cut"}});
  for (const auto& cost : explanation.phase_costs) {
    if (size(cost) <= kLeast * all) continue;
    table.add_row({cost.phase == "residual" ? "between the phases" : in_words(cost.phase),
                   format_seconds(cost.seconds_per_micro_step), format_seconds(cost.seconds_per_step)});
  }
  return table.empty() ? "" : table.to_string();
}

std::string splits_table(const tune::Explanation& explanation) {
  const auto& [row_cost, efficiency, idle] =
      std::tie(explanation.row_cost, explanation.matrix_efficiency, explanation.device_idle);
  std::vector<Table::Column> columns{{"split", Align::Left}, {"left unexplained"}};
  if (!row_cost.empty()) columns.push_back({"time per padded token, against the least"});
  if (!efficiency.empty()) columns.push_back({"matrix efficiency"});
  if (!idle.empty()) columns.push_back({"device idle"});
  Table table(columns);
  for (std::size_t i = 0; i < explanation.residuals.size(); ++i) {
    const auto& residual = explanation.residuals[i];
    std::vector<std::string> cells{
        run::to_string(residual.split),
        with_interval(residual.mid, Interval{residual.mid, residual.low, residual.high})};
    if (!row_cost.empty())
      cells.push_back(i < row_cost.size() ? fmt::format("{:.2f}x", row_cost[i].relative) : "");
    if (!efficiency.empty())
      cells.push_back(i < efficiency.size() ? fmt::format("{:.2f}", efficiency[i].efficiency) : "");
    if (!idle.empty()) cells.push_back(i < idle.size() ? format_percent(idle[i].share) : "");
    table.add_row(std::move(cells));
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
  for (const auto& part : explanation.not_separable)
    text += fmt::format("\nNot known, {}: {}.", in_words(part.part), part.reason);
  if (!explanation.not_separable.empty()) text += "\n";
  const std::string recommendations = describe_recommendations(explanation);
  return recommendations.empty() ? text : text + "\n" + recommendations;
}

std::string describe_recommendations(const tune::Explanation& explanation) {
  std::string text;
  for (const auto& advice : explanation.recommendations) {
    std::string cause = advice.cause == "residual" ? "what runs between the phases" : in_words(advice.cause);
    cause[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(cause[0])));
    text += fmt::format("{} takes {} of a step ({}): {}.\n", cause, format_seconds(advice.seconds),
                        format_percent(advice.share), advice.change);
  }
  return text;
}

}  // namespace batchwright::cli
