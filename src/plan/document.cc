#include "plan/document.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "base/error.h"

namespace batchwright::plan {
namespace {

// Writes JSON straight into text: building the tree of an answer first, thousands of nodes, took more than
// half of the time of a batch of requests.
class Writer {
 public:
  Writer& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  Writer& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  // `name` is one of our own field names: nothing in it needs an escape.
  Writer& key(std::string_view name) {
    separate();
    text_ += '"';
    text_ += name;
    text_ += "\":";
    first_ = true;
    return *this;
  }
  void value(std::int64_t number) {
    separate();
    const fmt::format_int digits(number);
    text_.append(digits.data(), digits.size());
  }
  void value(double number) {
    if (!std::isfinite(number)) return null();
    separate();
    const std::size_t start = text_.size();
    fmt::format_to(std::back_inserter(text_), FMT_COMPILE("{}"), number);
    // A whole number stays one that readers take for a real number.
    if (text_.find_first_not_of("-0123456789", start) == std::string::npos) text_ += ".0";
  }
  void value(bool yes) { word(yes ? "true" : "false"); }
  void value(std::string_view text) { word(dump_line(Json(std::string(text)))); }
  void null() { word("null"); }
  template <typename T>
  void field(std::string_view name, const T& content) {
    key(name).value(content);
  }
  std::string take() { return std::move(text_); }

 private:
  void separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }
  void word(std::string_view text) {
    separate();
    text_ += text;
  }

  std::string text_;
  bool first_ = true;
};

void write_bytes(Writer& out, const Range& range) {
  out.open('{');
  out.field("low", std::int64_t{std::llround(range.low)});
  out.field("mid", std::int64_t{std::llround(range.mid)});
  out.field("high", std::int64_t{std::llround(range.high)});
  out.close('}');
}

// Whole bytes that sum to the whole peak: the rounding goes into the largest part.
void write_parts(Writer& out, const MemoryParts& parts, std::int64_t sum) {
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
  out.open('{');
  for (const auto& [name, bytes] : rows) out.field(name, bytes);
  out.close('}');
}

void write_time(Writer& out, const SplitPlan& split) {
  const Range& step = split.step_seconds;
  out.key("step_seconds").open('{');
  out.field("low", step.low);
  out.field("mid", step.mid);
  out.field("high", step.high);
  out.close('}');
  const TimeParts& parts = split.time;
  out.key("time_parts").open('{');
  out.field("launch", parts.launch);
  out.field("products", parts.products);
  out.field("attention", parts.attention);
  out.field("elementwise", parts.elementwise);
  out.field("loss", parts.loss);
  out.field("unpacking", parts.unpacking);
  out.field("communication", parts.communication);
  out.field("optimizer", parts.optimizer);
  out.field("fixed", parts.fixed);
  out.close('}');
}

void write_split(Writer& out, const SplitPlan& split) {
  out.open('{');
  out.field("micro_batch", split.split.micro_batch);
  out.field("accumulation_steps", split.split.accumulation_steps);
  out.field("devices", split.split.devices);
  out.field("effective_batch", split.batch.real);
  out.field("exact", split.batch.exact());
  out.field("fits", name_of(split.fits));
  out.key("peak_bytes");
  write_bytes(out, split.peak_bytes);
  out.key("peak_parts");
  write_parts(out, split.memory.parts, std::llround(split.peak_bytes.mid));
  out.field("peak_moment", name_of(split.memory.moment));
  out.field("needed_bytes", std::int64_t{std::llround(split.memory.needed)});
  out.key("needed_bytes_range");
  write_bytes(out, split.needed_bytes);
  write_time(out, split);
  out.close('}');
}

void write_advice(Writer& out, const Plan& plan) {
  out.key("learning_rate");
  if (plan.learning_rate) {
    out.open('{');
    out.field("linear", plan.learning_rate->linear);
    out.field("sqrt", plan.learning_rate->sqrt);
    out.field("rule", std::string_view(plan.learning_rate->rule));
    out.close('}');
  } else {
    out.null();
  }
  out.key("warmup");
  if (!plan.warmup) return out.null();
  out.open('{');
  out.field("optimizer_steps", plan.warmup->optimizer_steps);
  out.field("micro_steps", plan.warmup->micro_steps);
  out.close('}');
}

void write_changes(Writer& out, const std::vector<Change>& changes) {
  out.key("if_nothing_fits").open('[');
  for (const Change& change : changes) {
    out.open('{');
    out.field("change", std::string_view(change.change));
    out.field("needed_bytes", std::int64_t{std::llround(change.needed_bytes)});
    out.field("peak_bytes", std::int64_t{std::llround(change.peak_bytes.mid)});
    out.key("peak_bytes_range");
    write_bytes(out, change.peak_bytes);
    out.field("step_seconds", change.step_seconds);
    out.field("fits", name_of(change.fits));
    out.close('}');
  }
  out.close(']');
}

}  // namespace

std::string plan_line(const Plan& plan) {
  Writer out;
  out.open('{');
  out.field("version", std::int64_t{1});
  out.field("requested_effective_batch", plan.request.effective_batch);
  out.field("model", std::string_view(plan.request.model));
  out.field("parameters", std::int64_t{std::llround(plan.parameters)});
  out.field("trained_parameters", std::int64_t{std::llround(plan.trained_parameters)});
  out.field("device", std::string_view(plan.device.name));
  out.field("memory_limit_bytes", plan.limit_bytes);
  out.field("counter", name_of(plan.request.counter));
  out.key("splits").open('[');
  for (const SplitPlan& split : plan.splits) write_split(out, split);
  out.close(']');
  out.key("recommended");
  if (plan.recommended)
    out.value(static_cast<std::int64_t>(*plan.recommended));
  else
    out.null();
  out.field("reason", std::string_view(plan.reason));
  out.key("largest_micro_batch_that_fits");
  if (plan.largest_micro_batch_that_fits)
    out.value(*plan.largest_micro_batch_that_fits);
  else
    out.null();
  write_advice(out, plan);
  write_changes(out, plan.if_nothing_fits);
  out.key("warnings").open('[');
  for (const std::string& warning : plan.warnings) out.value(std::string_view(warning));
  out.close(']');
  out.key("assumed").open('{');
  for (const auto& [key, value] : plan.request.assumed) out.field(key, std::string_view(value));
  out.close('}');
  out.close('}');
  return out.take();
}

Json plan_document(const Plan& plan) { return parse_json(plan_line(plan), "plan"); }

std::string answer_line(Planner& planner, const std::string& line, std::size_t number, bool& failed) {
  const std::string subject = "request " + std::to_string(number);
  try {
    return plan_line(planner.plan(parse_request(parse_json(line, subject), subject)));
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
