#include <cmath>

#include "tune/explain.h"

namespace batchwright::tune {
namespace {

Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

Json interval(const std::optional<Interval>& value) {
  if (!value) return nullptr;
  return {{"low", finite(value->low)}, {"high", finite(value->high)}};
}

Json efficiencies(const Explanation& explanation) {
  if (explanation.matrix_efficiency.empty()) return nullptr;
  Json result = Json::array();
  for (const auto& entry : explanation.matrix_efficiency) {
    result.push_back({{"split", run::to_string(entry.split)},
                      {"rows", entry.rows > 0 ? Json(entry.rows) : Json()},
                      {"efficiency", entry.efficiency}});
  }
  return result;
}

}  // namespace

Json to_json(const Explanation& explanation) {
  Json row_cost = Json::array(), shares = Json::object(), residuals = Json::array(),
       not_separable = Json::array(), phase_costs = Json::array(), idle = Json::array(),
       recommendations = Json::array();
  for (const auto& cost : explanation.row_cost)
    row_cost.push_back({{"rows", cost.rows}, {"relative", cost.relative}});
  for (const auto& [name, share] : explanation.shares) shares[name] = share;
  for (const auto& residual : explanation.residuals) {
    residuals.push_back(
        {{"split", run::to_string(residual.split)},
         {"seconds",
          {{"mid", residual.mid}, {"low", finite(residual.low)}, {"high", finite(residual.high)}}}});
  }
  for (const auto& part : explanation.not_separable)
    not_separable.push_back({{"part", part.part}, {"reason", part.reason}});
  for (const auto& cost : explanation.phase_costs) {
    phase_costs.push_back({{"phase", cost.phase},
                           {"seconds_per_micro_step", cost.seconds_per_micro_step},
                           {"seconds_per_step", cost.seconds_per_step}});
  }
  for (const auto& entry : explanation.device_idle)
    idle.push_back(
        {{"split", run::to_string(entry.split)}, {"seconds", entry.seconds}, {"share", entry.share}});
  for (const auto& advice : explanation.recommendations) {
    recommendations.push_back({{"cause", advice.cause},
                               {"seconds", advice.seconds},
                               {"share", advice.share},
                               {"change", advice.change}});
  }
  return {{"fixed_seconds_per_micro_step", or_null(explanation.fixed_seconds_per_micro_step)},
          {"seconds_per_token", or_null(explanation.seconds_per_token)},
          {"seconds_per_step", or_null(explanation.seconds_per_step)},
          {"intervals",
           {{"fixed_seconds_per_micro_step", interval(explanation.fixed_interval)},
            {"seconds_per_token", interval(explanation.token_interval)}}},
          {"row_cost", std::move(row_cost)},
          {"matrix_efficiency", efficiencies(explanation)},
          {"matrix_efficiency_source",
           explanation.efficiency_source.empty() ? Json() : Json(explanation.efficiency_source)},
          {"phase_costs", std::move(phase_costs)},
          {"device_idle", std::move(idle)},
          {"shares", std::move(shares)},
          {"residuals", std::move(residuals)},
          {"not_separable", std::move(not_separable)},
          {"recommendations", std::move(recommendations)},
          {"sentence", explanation.sentence}};
}

}  // namespace batchwright::tune
