#include "run/evidence.h"

#include "base/error.h"

namespace batchwright::run {
namespace {

MicroStepEvidence micro_step_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  MicroStepEvidence micro;
  micro.loss = fields.maybe_number("loss", -kMostNumber, kMostNumber);
  micro.gradient_before = fields.maybe_number("gradient_before", 0, kMostNumber);
  micro.gradient_after = fields.maybe_number("gradient_after", 0, kMostNumber);
  micro.examples = fields.integer("examples", 0, kMostInteger, 0);
  micro.labels = fields.integer("labels", 0, kMostInteger, 0);
  return micro;
}

}  // namespace

std::optional<double> StepEvidence::loss() const {
  double sum = 0;
  for (const MicroStepEvidence& micro : micro_steps) {
    if (!micro.loss) return std::nullopt;
    sum += *micro.loss;
  }
  return micro_steps.empty() ? std::nullopt : std::optional(sum);
}

std::optional<double> StepEvidence::gradient_norm() const {
  return micro_steps.empty() ? std::nullopt : micro_steps.back().gradient_after;
}

Json to_json(const StepEvidence& evidence) {
  Json micro_steps = Json::array();
  for (const MicroStepEvidence& micro : evidence.micro_steps) {
    micro_steps.push_back({{"loss", or_null(micro.loss)},
                           {"gradient_before", or_null(micro.gradient_before)},
                           {"gradient_after", or_null(micro.gradient_after)},
                           {"examples", micro.examples},
                           {"labels", micro.labels}});
  }
  return {{"micro_steps", std::move(micro_steps)},
          {"data", evidence.data},
          {"scheduler_steps", evidence.scheduler_steps},
          {"clippings", evidence.clippings},
          {"facts",
           {{"dropout", evidence.dropout},
            {"batch_statistics", evidence.batch_statistics},
            {"reduced_precision", evidence.reduced_precision},
            {"trainer", evidence.trainer}}}};
}

StepEvidence evidence_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  StepEvidence evidence;
  if (const Json* micro_steps = fields.find("micro_steps")) {
    if (!micro_steps->is_array())
      throw Error(ErrorKind::InvalidInput, subject, "\"micro_steps\" must be a list");
    for (const Json& micro : *micro_steps) {
      evidence.micro_steps.push_back(micro_step_from_json(micro, subject + ": micro_steps"));
    }
  }
  evidence.data = fields.text("data", "");
  evidence.scheduler_steps = fields.integer("scheduler_steps", 0, kMostInteger, 0);
  evidence.clippings = fields.integer("clippings", 0, kMostInteger, 0);
  if (const Json* found = fields.find("facts")) {
    const JsonFields facts(*found, subject + ": facts");
    evidence.dropout = facts.boolean("dropout", false);
    evidence.batch_statistics = facts.boolean("batch_statistics", false);
    evidence.reduced_precision = facts.boolean("reduced_precision", false);
    evidence.trainer = facts.text("trainer", "");
  }
  return evidence;
}

}  // namespace batchwright::run
