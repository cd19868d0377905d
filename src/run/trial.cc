#include "run/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"

namespace batchwright::run {
namespace {

constexpr std::array<std::pair<std::string_view, Outcome>, 6> kOutcomes = {
    {{"measured", Outcome::Measured},
     {"out_of_memory", Outcome::OutOfMemory},
     {"crashed", Outcome::Crashed},
     {"timed_out", Outcome::TimedOut},
     {"rejected", Outcome::Rejected},
     {"not_tried", Outcome::NotTried}}};

std::int64_t ceiling_quotient(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0); }

TimedStep timed_step_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  TimedStep step;
  step.window = fields.integer("window", 0, kMostInteger);
  step.seconds = fields.number("seconds", 0, kMostSeconds);
  step.tokens = fields.integer("tokens", 0, kMostInteger, 0);
  step.padded_tokens = fields.integer("padded_tokens", 0, kMostInteger, 0);
  return step;
}

TrialRequest request_from_json(const JsonFields& fields, const std::string& subject) {
  TrialRequest request;
  request.split.micro_tokens = fields.integer("micro_tokens", 0, kMostInteger, 0);
  const std::int64_t least = request.split.is_token_cut() ? 0 : 1;
  request.split.micro_batch = fields.integer("micro_batch", least, 1 << 24);
  request.split.accumulation_steps = fields.integer("accumulation_steps", least, 1 << 24);
  request.split.devices = fields.integer("devices", 1, 1 << 24, 1);
  request.steps = fields.integer("timed_steps", 1, kMostInteger);
  request.warmup_steps = fields.integer("warmup_steps", 0, kMostInteger, 0);
  request.first_step = fields.integer("first_step", 0, kMostInteger, 0);
  request.batch = fields.text("batch", "sampled");
  request.layout = fields.text("layout", "auto");
  request.checkpointing = fields.text("checkpointing", "none");
  if (request.batch != "sampled" && request.batch != "longest") {
    throw Error(ErrorKind::InvalidInput, subject, fmt::format("\"batch\" '{}' is not known", request.batch));
  }
  return request;
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
  for (const auto& [name, value] : kOutcomes) {
    if (value == outcome) return name;
  }
  return "not_tried";
}

std::string outcome_words(Outcome outcome) {
  std::string words(outcome_name(outcome));
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

Outcome parse_outcome(std::string_view text, const std::string& subject) {
  for (const auto& [name, value] : kOutcomes) {
    if (name == text) return value;
  }
  throw Error(ErrorKind::InvalidInput, subject, fmt::format("\"outcome\" '{}' is not known", text));
}

Json to_json(const Trial& trial) {
  Json steps = Json::array(), phases = Json::object();
  for (const TimedStep& step : trial.steps) {
    steps.push_back({{"window", step.window},
                     {"seconds", step.seconds},
                     {"tokens", step.tokens},
                     {"padded_tokens", step.padded_tokens}});
  }
  for (const auto& [name, seconds] : trial.phases) phases[name] = seconds;
  Json object = {{"micro_batch", trial.request.split.micro_batch},
                 {"accumulation_steps", trial.request.split.accumulation_steps},
                 {"devices", trial.request.split.devices},
                 {"micro_tokens", trial.request.split.micro_tokens},
                 {"timed_steps", trial.request.steps},
                 {"warmup_steps", trial.request.warmup_steps},
                 {"first_step", trial.request.first_step},
                 {"batch", trial.request.batch},
                 {"layout", trial.request.layout},
                 {"checkpointing", trial.request.checkpointing},
                 {"outcome", outcome_name(trial.outcome)},
                 {"reason", trial.reason},
                 {"steps", std::move(steps)},
                 {"phases", std::move(phases)},
                 {"peak_bytes", or_null(trial.peak_bytes)},
                 {"observed_micro_batch", or_null(trial.observed_micro_batch)},
                 {"observed_accumulation_steps", or_null(trial.observed_accumulation_steps)},
                 {"wall_seconds", trial.wall_seconds},
                 {"startup_seconds", trial.startup_seconds}};
  if (!trial.enqueue.empty()) object["enqueue"] = trial.enqueue;
  if (trial.device_busy_share) object["device_busy_share"] = *trial.device_busy_share;
  return object;
}

Trial trial_from_json(const Json& object, const std::string& subject) {
  const JsonFields fields(object, subject);
  Trial trial;
  trial.request = request_from_json(fields, subject);
  trial.outcome = parse_outcome(fields.text("outcome"), subject);
  trial.reason = fields.text("reason", "");
  if (const Json* steps = fields.find("steps")) {
    if (!steps->is_array()) throw Error(ErrorKind::InvalidInput, subject, "\"steps\" must be a list");
    for (const Json& step : *steps) trial.steps.push_back(timed_step_from_json(step, subject + ": steps"));
  }
  trial.phases = fields.numbers("phases", 0, kMostSeconds);
  trial.enqueue = fields.numbers("enqueue", 0, kMostSeconds);
  trial.device_busy_share = fields.maybe_number("device_busy_share", 0, 1);
  trial.peak_bytes = fields.maybe_integer("peak_bytes", 0, kMostInteger);
  trial.observed_micro_batch = fields.maybe_integer("observed_micro_batch", 0, kMostInteger);
  trial.observed_accumulation_steps = fields.maybe_integer("observed_accumulation_steps", 0, kMostInteger);
  trial.wall_seconds = fields.number("wall_seconds", 0, kMostSeconds, 0);
  trial.startup_seconds = fields.number("startup_seconds", 0, kMostSeconds, 0);
  return trial;
}

TrialRecord::TrialRecord(TrialRequest request) { trial_.request = std::move(request); }

void TrialRecord::add(const StepReport& step) {
  if (step.rank != 0 || complete()) return;
  ++seen_;
  slowest_ = std::max(slowest_, step.seconds);
  if (step.peak_bytes) trial_.peak_bytes = std::max(trial_.peak_bytes.value_or(0), *step.peak_bytes);
  ++windows_[{step.micro_steps, step.examples}];
  if (seen_ <= trial_.request.warmup_steps) return;
  trial_.steps.push_back(
      {trial_.request.first_step + seen_ - 1, step.seconds, step.tokens, step.padded_tokens});
  for (const auto& [name, seconds] : step.phases) phase_sums_[name] += seconds;
  for (const auto& [name, seconds] : step.enqueue) enqueue_sums_[name] += seconds;
}

bool TrialRecord::complete() const { return seen_ >= trial_.request.warmup_steps + trial_.request.steps; }

// Of kinds that were seen equally often, the fuller.
std::optional<std::pair<std::int64_t, std::int64_t>> TrialRecord::typical_window() const {
  const auto most = std::max_element(windows_.begin(), windows_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first.second) < std::pair(b.second, b.first.second);
  });
  if (most == windows_.end() || most->first.first == 0) return std::nullopt;
  return most->first;
}

std::string TrialRecord::mismatch() const {
  const Split& asked = trial_.request.split;
  const auto window = typical_window();
  if (!window || asked.is_token_cut()) return "";
  const auto [micro_steps, seen_examples] = *window;
  const std::int64_t wanted = asked.micro_batch * asked.accumulation_steps;
  const std::int64_t examples = seen_examples == 0 ? wanted : seen_examples;
  if (examples == wanted && micro_steps == asked.accumulation_steps) return "";
  const auto counted = [](std::int64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
  };
  const bool never_accumulates = micro_steps == 1 && seen_examples == asked.micro_batch;
  return fmt::format("asked for {} ({} of {}), and saw {} and {} a step{}", to_string(asked),
                     counted(asked.accumulation_steps, "micro-step"), counted(asked.micro_batch, "example"),
                     counted(micro_steps, "micro-step"), counted(seen_examples, "example"),
                     never_accumulates ? ": does the command pass {accum} on?" : "");
}

Trial TrialRecord::finish(Outcome outcome, std::string reason) const {
  Trial trial = trial_;
  trial.outcome = outcome;
  trial.reason = std::move(reason);
  const auto count = static_cast<double>(trial.steps.size());
  for (const auto& [name, sum] : phase_sums_) trial.phases[name] = sum / count;
  for (const auto& [name, sum] : enqueue_sums_) trial.enqueue[name] = sum / count;
  if (const auto window = typical_window()) {
    trial.observed_accumulation_steps = window->first;
    if (window->second > 0) trial.observed_micro_batch = ceiling_quotient(window->second, window->first);
  }
  if (outcome != Outcome::Measured) return trial;
  if (!complete()) {
    trial.outcome = Outcome::Crashed;
    trial.reason =
        fmt::format("ended after {} of {} steps", seen_, trial.request.warmup_steps + trial.request.steps);
  } else if (std::string wrong = mismatch(); !wrong.empty()) {
    trial.outcome = Outcome::Rejected;
    trial.reason = std::move(wrong);
  }
  return trial;
}

}  // namespace batchwright::run
