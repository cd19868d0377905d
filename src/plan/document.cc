#include "plan/document.h"

#include <cmath>

#include "base/error.h"

namespace batchwright::plan {
namespace {

Json bytes_of(const Range& range) {
  return {
      {"low", std::llround(range.low)}, {"mid", std::llround(range.mid)}, {"high", std::llround(range.high)}};
}

Json seconds_of(const Range& range) { return {{"low", range.low}, {"mid", range.mid}, {"high", range.high}}; }

// Whole bytes that sum to the whole peak: the rounding goes into the largest part.
Json parts_of(const MemoryParts& parts, std::int64_t sum) {
  std::pair<const char*, std::int64_t> rows[] = {{"weights", std::llround(parts.weights)},
                                                 {"adapters", std::llround(parts.adapters)},
                                                 {"gradients", std::llround(parts.gradients)},
                                                 {"optimizer_state", std::llround(parts.optimizer_state)},
                                                 {"activations", std::llround(parts.activations)},
                                                 {"loss", std::llround(parts.loss)},
                                                 {"temporary", std::llround(parts.temporary)},
                                                 {"allocator", std::llround(parts.allocator)},
                                                 {"context", std::llround(parts.context)}};
  auto* largest = &rows[0];
  for (auto& row : rows) {
    sum -= row.second;
    if (row.second > largest->second) largest = &row;
  }
  largest->second += sum;
  Json object = Json::object();
  for (const auto& [name, bytes] : rows) object[name] = bytes;
  return object;
}

Json time_parts_of(const TimeParts& parts) {
  return {{"launch", parts.launch},
          {"products", parts.products},
          {"attention", parts.attention},
          {"elementwise", parts.elementwise},
          {"loss", parts.loss},
          {"unpacking", parts.unpacking},
          {"communication", parts.communication},
          {"optimizer", parts.optimizer},
          {"fixed", parts.fixed}};
}

Json split_document(const SplitPlan& split) {
  return {{"micro_batch", split.split.micro_batch},
          {"accumulation_steps", split.split.accumulation_steps},
          {"devices", split.split.devices},
          {"effective_batch", split.batch.real},
          {"exact", split.batch.exact()},
          {"fits", name_of(split.fits)},
          {"peak_bytes", bytes_of(split.peak_bytes)},
          {"peak_parts", parts_of(split.memory.parts, std::llround(split.peak_bytes.mid))},
          {"peak_moment", name_of(split.memory.moment)},
          {"needed_bytes", std::llround(split.memory.needed)},
          {"needed_bytes_range", bytes_of(split.needed_bytes)},
          {"step_seconds", seconds_of(split.step_seconds)},
          {"time_parts", time_parts_of(split.time)}};
}

Json assumed_document(const Request& request) {
  Json object = Json::object();
  for (const auto& [key, value] : request.assumed) object[key] = value;
  return object;
}

}  // namespace

Json plan_document(const Plan& plan) {
  Json document = {{"version", 1},
                   {"requested_effective_batch", plan.request.effective_batch},
                   {"model", plan.request.model},
                   {"parameters", std::llround(plan.parameters)},
                   {"trained_parameters", std::llround(plan.trained_parameters)},
                   {"device", plan.device.name},
                   {"memory_limit_bytes", plan.limit_bytes},
                   {"counter", name_of(plan.request.counter)}};
  Json& splits = document["splits"] = Json::array();
  for (const SplitPlan& split : plan.splits) splits.push_back(split_document(split));
  document["recommended"] = plan.recommended ? Json(*plan.recommended) : Json(nullptr);
  document["reason"] = plan.reason;
  document["largest_micro_batch_that_fits"] =
      plan.largest_micro_batch_that_fits ? Json(*plan.largest_micro_batch_that_fits) : Json(nullptr);
  document["learning_rate"] = nullptr;
  if (plan.learning_rate) {
    document["learning_rate"] = {{"linear", plan.learning_rate->linear},
                                 {"sqrt", plan.learning_rate->sqrt},
                                 {"rule", plan.learning_rate->rule}};
  }
  document["warmup"] = nullptr;
  if (plan.warmup) {
    document["warmup"] = {{"optimizer_steps", plan.warmup->optimizer_steps},
                          {"micro_steps", plan.warmup->micro_steps}};
  }
  Json& changes = document["if_nothing_fits"] = Json::array();
  for (const Change& change : plan.if_nothing_fits) {
    changes.push_back({{"change", change.change},
                       {"peak_bytes", std::llround(change.peak_bytes.mid)},
                       {"peak_bytes_range", bytes_of(change.peak_bytes)},
                       {"step_seconds", change.step_seconds},
                       {"fits", name_of(change.fits)}});
  }
  document["warnings"] = plan.warnings;
  document["assumed"] = assumed_document(plan.request);
  return document;
}

std::string answer_line(Planner& planner, const std::string& line, std::size_t number, bool& failed) {
  const std::string subject = "request " + std::to_string(number);
  try {
    return dump_line(plan_document(planner.plan(parse_request(parse_json(line, subject), subject))));
  } catch (const Error& error) {
    failed = true;
    return dump_line({{"version", 1},
                      {"error",
                       {{"kind", error_kind_name(error.kind())},
                        {"subject", error.subject()},
                        {"message", error.message()},
                        {"hint", error.hint()}}}});
  }
}

}  // namespace batchwright::plan
