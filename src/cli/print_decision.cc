#include "cli/print_decision.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/table.h"
#include "base/units.h"
#include "cli/print_explanation.h"

namespace batchwright::cli {
namespace {

std::string step_time(const std::optional<Interval>& seconds) {
  if (!seconds) return "";
  if (!std::isfinite(seconds->low) || !std::isfinite(seconds->high)) return format_seconds(seconds->mid);
  return format_seconds_interval(seconds->mid, seconds->low, seconds->high);
}

std::string relative(const std::optional<Interval>& ratio, bool is_best) {
  if (is_best) return "best";
  if (!ratio) return "";
  return fmt::format("{:+.1f} %", 100 * (ratio->mid - 1));
}

std::string percent_interval(const Interval& fraction) {
  if (!std::isfinite(fraction.low) || !std::isfinite(fraction.high)) return format_percent(fraction.mid);
  return fmt::format("{} [{}, {}]", format_percent(fraction.mid), format_percent(fraction.low),
                     format_percent(fraction.high));
}

std::string table_of(const tune::Decision& decision) {
  Table table({{"split", Align::Left},
               {"outcome", Align::Left},
               {"step time", Align::Right},
               {"peak", Align::Right},
               {"vs best", Align::Right},
               {"note", Align::Left}});
  for (std::size_t i = 0; i < decision.trials.size(); ++i) {
    const tune::SplitResult& result = decision.trials[i];
    table.add_row({run::to_string(result.split), run::outcome_words(result.outcome),
                   step_time(result.step_seconds), result.peak_bytes ? format_bytes(*result.peak_bytes) : "",
                   relative(result.relative, decision.recommended == i),
                   result.outcome == run::Outcome::Measured ? "" : result.why_dropped});
  }
  for (const tune::SplitResult& cut : decision.token_cuts) {
    table.add_row({run::to_string(cut.split), run::outcome_words(cut.outcome), step_time(cut.step_seconds),
                   cut.peak_bytes ? format_bytes(*cut.peak_bytes) : "", relative(cut.relative, false),
                   cut.outcome == run::Outcome::Measured ? "a token cut" : cut.why_dropped});
  }
  return table.to_string();
}

// Whether finding the split was worth it hangs on how long the training is.
std::string break_even_sentence(double steps, const std::optional<std::int64_t>& planned) {
  if (!planned) return fmt::format(" and pays back after {:.0f} steps", steps);
  if (steps <= static_cast<double>(*planned))
    return fmt::format(" and pays back after {:.0f} of the training's {} steps", steps, *planned);
  return fmt::format(
      " and would pay back after {:.0f} steps, more than the training's {} (--epochs and --steps set them)",
      steps, *planned);
}

std::string saving_sentence(const tune::Decision& decision, const std::optional<std::int64_t>& planned) {
  if (!decision.saving || !decision.slowest) return "";
  std::string text =
      fmt::format("It saves {} of the time of {}, the slowest", percent_interval(*decision.saving),
                  run::to_string(decision.trials[*decision.slowest].split));
  text += fmt::format("; tuning took {}", format_seconds(decision.tuning_seconds));
  if (decision.break_even_steps) text += break_even_sentence(*decision.break_even_steps, planned);
  return text + ".\n";
}

std::string advice_sentence(const tune::Decision& decision) {
  if (!decision.largest_that_fits || !decision.largest_and_neighbours || !decision.recommended) return "";
  const auto name = [&](std::size_t i) { return run::to_string(decision.trials[i].split); };
  const auto measured =
      std::count_if(decision.trials.begin(), decision.trials.end(),
                    [](const tune::SplitResult& result) { return result.step_seconds.has_value(); });
  if (measured < 2) return "";  // one time alone judges nobody's advice
  if (decision.largest_that_fits == decision.recommended) {
    return fmt::format("The common advice, the largest micro-batch that fits ({}), is right here.\n",
                       name(*decision.largest_that_fits));
  }
  const auto& largest = decision.trials[*decision.largest_that_fits].relative;
  if (!largest) return "";
  return fmt::format(
      "The common advice, the largest micro-batch that fits ({}), would be {:+.1f} %; trying the next two "
      "smaller ones too would find {}.\n",
      name(*decision.largest_that_fits), 100 * (largest->mid - 1), name(*decision.largest_and_neighbours));
}

// A token cut is no exact split, so it is offered, not recommended, and only when it is surely faster.
std::string token_cut_sentence(const tune::Decision& decision) {
  const tune::SplitResult* best = nullptr;
  for (const tune::SplitResult& cut : decision.token_cuts) {
    if (cut.relative && (best == nullptr || cut.relative->mid < best->relative->mid)) best = &cut;
  }
  if (best == nullptr || !(best->relative->high < 1)) return "";
  return fmt::format(
      "Micro-batches filled to {} tokens instead of a fixed number of examples (--micro-tokens {}) would "
      "take {} "
      "less time a step, with the same gradient.\n",
      best->split.micro_tokens, best->split.micro_tokens, format_percent(1 - best->relative->mid));
}

std::string unconfirmed_sentence(std::int64_t memory_limit_bytes) {
  if (memory_limit_bytes == 0)
    return "Its peak is that of the steps that ran; longer examples later in the data may need more.\n";
  return fmt::format(
      "The memory limit of {} held in the steps that ran; longer examples later in the data may need more.\n",
      format_bytes(memory_limit_bytes));
}

std::string capitalised(std::string text) {
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

std::string scaling_sentence(const tune::Decision& decision) {
  std::string text;
  for (const tune::DeviceScaling& scaling : decision.scaling) {
    if (!scaling.speedup || !scaling.efficiency) continue;
    text += fmt::format("{} device{} ({}): {:.2f} times as fast, {} efficiency", scaling.devices,
                        scaling.devices == 1 ? "" : "s", run::to_string(decision.trials[scaling.split].split),
                        *scaling.speedup, format_percent(*scaling.efficiency, 0));
    if (scaling.devices > 1 && scaling.collective_share) {
      text += fmt::format(", {} of its step in sums over the devices",
                          format_percent(*scaling.collective_share, 0));
    }
    text += "\n";
  }
  return text;
}

std::string describe(const TuningResult& result) {
  const tune::Decision& decision = result.decision;
  std::string text = table_of(decision) + "\n";
  if (!decision.recommended) return text + capitalised(decision.reason) + ".\n";
  text +=
      fmt::format("Recommended: --split {}\n", run::to_string(decision.trials[*decision.recommended].split));
  text += capitalised(decision.reason) + ".\n" + saving_sentence(decision, result.planned_steps) +
          advice_sentence(decision) + token_cut_sentence(decision) + scaling_sentence(decision);
  if (!decision.explanation.sentence.empty()) text += decision.explanation.sentence + "\n";
  text += describe_recommendations(decision.explanation);
  if (!decision.confirmed_on_worst_batch) text += unconfirmed_sentence(result.memory_limit_bytes);
  return text;
}

}  // namespace batchwright::cli
