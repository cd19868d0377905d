#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "check/log_rules.h"

namespace batchwright::check {
namespace {

struct Message {
  std::string_view text;  // a part of the message that no other has
  std::string_view kind;
  std::string_view meaning;
};

// Messages of libraries whose cause is one kind of mistake, whatever else the log says.
constexpr Message kMessages[] = {
    {"unscale_() has already been called on this optimizer", "unscale_twice",
     "the scaler refuses a second unscale_ in one step"},
    {"Do not set `gradient_accumulation_steps` in the DeepSpeed config", "two_places",
     "Lightning sets it from accumulate_grad_batches and refuses another"},
    {"Please set only one of gradient_accumulation_steps or batch_size", "two_places",
     "Axolotl refuses both"},
    {"warmup_steps and warmup_ratio are mutually exclusive", "two_places", "Axolotl refuses both"},
    {"does not support gradient accumulation", "step_in_backward_hook",
     "an optimizer that steps inside backward cannot accumulate"},
    {"Gradient accumulation is not supported with optimizer in bwd", "step_in_backward_hook",
     "an optimizer that steps inside backward cannot accumulate"},
    {"per gpu: 0 has to be greater than 0", "not_divisible", "the micro-batch size was floored to 0"},
    {"accumulation steps: 0 has to be greater than 0", "not_divisible",
     "the accumulation steps were floored to 0"},
    {"warmup_ratio must lie in range [0,1]", "warmup_gt_total", "a ratio above 1"},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() &&
         (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' || text.back() == '.'))
    text.remove_suffix(1);
  return text;
}

// "... world_size 256 != 4 * 8 * 1"
void assertion(std::string_view row, std::size_t file, int line, FindingList& found) {
  long long total = 0, micro = 0, steps = 0, world = 0;
  const std::size_t at = row.find("world_size");
  const std::string tail(trimmed(row.substr(std::min(row.size(), at + 10))).substr(0, 80));
  const bool numbers =
      std::sscanf(tail.c_str(), "%lld != %lld * %lld * %lld", &total, &micro, &steps, &world) == 4;
  Finding& f = found.add("ds_world_size", file, line);
  if (!numbers || micro < 1 || steps < 1 || micro > 1'000'000 || steps > 1'000'000) return;
  f.what = fmt::format("DeepSpeed was told {} and sees {} x {} x {} processes = {}", total, micro, steps,
                       world, micro * steps * world);
  if (total % (micro * steps) == 0 && total > 0)
    f.fix = fmt::format(
        "it would hold with {} processes: start it with a launcher that starts so many (and before the "
        "engine reads its configuration)",
        total / (micro * steps));
  // A window of one with a multiple missing: the accumulation steps never reached the engine.
  if (steps == 1 && world > 0 && micro > 0 && total % (micro * world) == 0 && total / (micro * world) > 1 &&
      world > 1) {
    Finding& missing = found.add("ds_accum_missing", file, line);
    missing.what =
        fmt::format("the engine took 1 accumulation step where {} are needed", total / (micro * world));
  }
}

// "- ds gradient_accumulation_steps=8 vs hf gradient_accumulation_steps=8"
void mismatch(std::string_view row, std::size_t file, int line, FindingList& found) {
  const std::size_t versus = row.find(" vs hf ");
  const std::size_t left = row.find('=');
  const std::size_t right = row.rfind('=');
  if (versus == std::string_view::npos || left >= versus || right <= versus) return;
  const std::string engine(trimmed(row.substr(left + 1, versus - left - 1))),
      argument(trimmed(row.substr(right + 1)));
  const std::string key(trimmed(row.substr(row.find("ds ") + 3, left - row.find("ds ") - 3)));
  const bool equal = engine == argument;
  Finding& f = found.add(equal ? "type_error" : "two_places", file, line);
  f.what = equal ? fmt::format("{} shows two equal values, {}: one of them is a string", key, engine)
                 : fmt::format("{} is {} in DeepSpeed's file and {} in the arguments", key, engine, argument);
  f.consequence = "the Trainer refuses to start";
  f.fix = equal ? "write the number without quotes, or \"auto\"" : "\"auto\" in DeepSpeed's file";
  if (!equal && key.find("lr") != std::string::npos) {
    Finding& rate = found.add("lr_override", file, line);
    rate.what = f.what;
  }
}

// "Updating DeepSpeed's gradient accumulation steps to 1 from 16."
void updated(std::string_view row, std::size_t file, int line, FindingList& found) {
  const std::size_t at = row.find("accumulation steps to ");
  if (at == std::string_view::npos) return;
  int now = 0, before = 0;
  const std::string tail(row.substr(at + 22).substr(0, 40));
  if (std::sscanf(tail.c_str(), "%d from %d", &now, &before) != 2 || now == before) return;
  Finding& f = found.add("silent_override", file, line);
  f.what = fmt::format("Accelerate replaces the engine's {} accumulation steps by {}", before, now);
  f.consequence =
      now == 1 ? "every micro-batch is an optimizer step" : "the batch is not the one in the file";
  f.fix = fmt::format("Accelerator(gradient_accumulation_steps={})", before);
}

void plugin_mismatch(std::string_view row, std::size_t file, int line, FindingList& found) {
  const std::size_t at = row.find("GradientAccumulationPlugin has ");
  if (at == std::string_view::npos) return;
  int plugin = 0, engine = 0;
  const std::string tail(row.substr(at).substr(0, 120));
  if (std::sscanf(tail.c_str(), "GradientAccumulationPlugin has %d, DeepSpeed config has %d", &plugin,
                  &engine) != 2 ||
      plugin == engine)
    return;
  Finding& f = found.add(engine == 1 ? "ds_accum_default" : "two_places", file, line);
  f.what = fmt::format("the loop accumulates {}, the engine {}", plugin, engine);
  f.consequence = engine == 1 ? "every micro-batch is an optimizer step" : "the engine's value wins";
}

}  // namespace

void check_messages(const LogText& log, FindingList& found) {
  int line = log.first_line;
  bool overflow_seen = false;
  for (std::size_t start = 0; start < log.text.size();) {
    const std::size_t end = std::min(log.text.find('\n', start), log.text.size());
    const std::string_view row = log.text.substr(start, std::min<std::size_t>(end - start, 4000));
    start = end + 1;
    if (row.find("gradient_acc_step * world_size") != std::string_view::npos &&
        row.find("!=") != std::string_view::npos)
      assertion(row, log.file, line, found);
    if (row.find("- ds ") != std::string_view::npos && row.find(" vs hf ") != std::string_view::npos)
      mismatch(row, log.file, line, found);
    if (row.find("gradient accumulation steps to") != std::string_view::npos)
      updated(row, log.file, line, found);
    plugin_mismatch(row, log.file, line, found);
    for (const Message& message : kMessages) {
      if (row.find(message.text) == std::string_view::npos) continue;
      Finding& f = found.add(message.kind, log.file, line);
      f.what = fmt::format("the log says so: {}", trimmed(row).substr(0, 160));
      f.consequence = message.meaning;
    }
    const bool skipped = row.find("OVERFLOW! Rank") != std::string_view::npos ||
                         row.find("Gradient overflow.  Skipping step") != std::string_view::npos ||
                         row.find("Detected call of `lr_scheduler.step()` before `optimizer.step()`") !=
                             std::string_view::npos;
    if (skipped && !overflow_seen) {
      overflow_seen = true;
      Finding& f = found.add("sched_vs_skipped_updates", log.file, line);
      f.what = "optimizer steps were skipped at overflows of the loss scale";
    }
    ++line;
  }
}

}  // namespace batchwright::check
