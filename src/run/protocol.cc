#include "run/protocol.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace batchwright::run {
namespace {

// JSON has no infinities: a loss that overflowed travels as null, like one that is not known.
Json maybe_finite(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

template <typename Ranked>
void put_rank(Json& object, const Ranked& message) {
  object["rank"] = message.rank;
  object["world_size"] = message.world_size;
}

template <typename Ranked>
void take_rank(const JsonFields& fields, Ranked& message) {
  message.world_size = static_cast<int>(fields.integer("world_size", 1, 1 << 20, 1));
  message.rank = static_cast<int>(fields.integer("rank", 0, message.world_size - 1, 0));
}

struct Writer {
  Json operator()(const Hello& hello) const {
    Json object = {
        {"type", "hello"},        {"protocol", hello.protocol},       {"framework", hello.framework},
        {"device", hello.device}, {"can_resplit", hello.can_resplit}, {"process_id", hello.process_id}};
    put_rank(object, hello);
    return object;
  }
  Json operator()(const StepReport& step) const {
    Json phases = Json::object();
    for (const auto& [name, seconds] : step.phases) phases[name] = seconds;
    Json object = {{"type", "step"},
                   {"step", step.step},
                   {"micro_steps", step.micro_steps},
                   {"examples", step.examples},
                   {"tokens", step.tokens},
                   {"padded_tokens", step.padded_tokens},
                   {"seconds", step.seconds},
                   {"phases", std::move(phases)},
                   {"loss", maybe_finite(step.loss)},
                   {"grad_norm", maybe_finite(step.grad_norm)},
                   {"learning_rate", maybe_finite(step.learning_rate)},
                   {"peak_bytes", or_null(step.peak_bytes)}};
    if (!step.enqueue.empty()) object["enqueue"] = step.enqueue;
    if (step.evidence) object["evidence"] = to_json(*step.evidence);
    if (step.loss_scale) object["loss_scale"] = *step.loss_scale;
    if (step.skipped) object["skipped"] = true;
    put_rank(object, step);
    return object;
  }
  Json operator()(const Failed& failed) const {
    Json object = {{"type", "failed"},
                   {"kind", failed.kind},
                   {"message", failed.message},
                   {"peak_bytes", or_null(failed.peak_bytes)}};
    put_rank(object, failed);
    return object;
  }
  Json operator()(const Done& done) const {
    Json object = {{"type", "done"}, {"result", done.result}};
    put_rank(object, done);
    return object;
  }
  Json operator()(const Note& note) const {
    return {{"type", "note"}, {"text", note.text}, {"fraction", maybe_finite(note.fraction)}};
  }
  Json operator()(const RunSplit& split) const {
    return {{"type", "split"},
            {"micro", split.micro},
            {"accum", split.accum},
            {"steps", split.steps},
            {"first_step", split.first_step},
            {"batch", split.batch},
            {"layout", split.layout},
            {"checkpointing", split.checkpointing},
            {"micro_tokens", split.micro_tokens}};
  }
  Json operator()(const Stop&) const { return {{"type", "stop"}}; }
};

Hello parse_hello(const JsonFields& fields) {
  Hello hello;
  // Only the version is required: a worker of another version must be recognised, whatever else it says.
  hello.protocol = static_cast<int>(fields.integer("protocol", 0, 1 << 30));
  hello.framework = fields.text("framework", "");
  hello.device = fields.text("device", "");
  hello.can_resplit = fields.boolean("can_resplit", false);
  hello.process_id = fields.integer("process_id", 0, kMostInteger, 0);
  take_rank(fields, hello);
  return hello;
}

StepReport parse_step(const JsonFields& fields) {
  StepReport step;
  step.step = fields.integer("step", 1, kMostInteger);
  step.micro_steps = fields.integer("micro_steps", 0, kMostInteger, 0);
  step.examples = fields.integer("examples", 0, kMostInteger, 0);
  step.tokens = fields.integer("tokens", 0, kMostInteger, 0);
  step.padded_tokens = fields.integer("padded_tokens", 0, kMostInteger, 0);
  step.seconds = fields.number("seconds", 0, kMostSeconds);
  step.phases = fields.numbers("phases", 0, kMostSeconds);
  step.enqueue = fields.numbers("enqueue", 0, kMostSeconds);
  step.loss = fields.maybe_number("loss", -kMostNumber, kMostNumber);
  step.grad_norm = fields.maybe_number("grad_norm", 0, kMostNumber);
  step.learning_rate = fields.maybe_number("learning_rate", 0, kMostNumber);
  step.peak_bytes = fields.maybe_integer("peak_bytes", 0, kMostInteger);
  if (const Json* evidence = fields.find("evidence"))
    step.evidence = evidence_from_json(*evidence, "message: evidence");
  step.loss_scale = fields.maybe_number("loss_scale", 0, kMostNumber);
  step.skipped = fields.boolean("skipped", false);
  take_rank(fields, step);
  return step;
}

Failed parse_failed(const JsonFields& fields) {
  Failed failed;
  failed.kind = fields.text("kind");
  failed.message = fields.text("message", "");
  failed.peak_bytes = fields.maybe_integer("peak_bytes", 0, kMostInteger);
  take_rank(fields, failed);
  return failed;
}

RunSplit parse_run_split(const JsonFields& fields) {
  RunSplit split;
  split.micro_tokens = fields.integer("micro_tokens", 0, kMostInteger, 0);
  const std::int64_t least = split.micro_tokens > 0 ? 0 : 1;
  split.micro = fields.integer("micro", least, kMostInteger, 0);
  split.accum = fields.integer("accum", least, kMostInteger, 0);
  if (split.micro < least || split.accum < least) {
    throw Error(ErrorKind::InvalidInput, "message",
                "\"micro\" and \"accum\" are needed without micro_tokens");
  }
  split.steps = fields.integer("steps", 1, kMostInteger);
  split.first_step = fields.integer("first_step", 0, kMostInteger, 0);
  split.batch = fields.text("batch", split.batch);
  if (split.batch != "sampled" && split.batch != "longest") {
    throw Error(ErrorKind::InvalidInput, "message",
                fmt::format("\"batch\" is sampled or longest, and is '{}'", split.batch));
  }
  split.layout = fields.text("layout", split.layout);
  split.checkpointing = fields.text("checkpointing", split.checkpointing);
  return split;
}

}  // namespace

std::string to_line(const Message& message) { return dump_line(std::visit(Writer{}, message)); }

Message parse_message(std::string_view line) {
  const Json object = parse_json(line, "message");
  const JsonFields fields(object, "message");
  const std::string type = fields.text("type");
  if (type == "hello") return parse_hello(fields);
  if (type == "step") return parse_step(fields);
  if (type == "failed") return parse_failed(fields);
  if (type == "split") return parse_run_split(fields);
  if (type == "stop") return Stop{};
  if (type == "done") {
    Done done;
    if (const Json* result = fields.find("result")) done.result = *result;
    take_rank(fields, done);
    return done;
  }
  if (type == "note") return Note{fields.text("text", ""), fields.maybe_number("fraction", 0, 1)};
  throw Error(ErrorKind::InvalidInput, "message", fmt::format("has the unknown type '{}'", type));
}

}  // namespace batchwright::run
