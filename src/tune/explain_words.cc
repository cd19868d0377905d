#include "tune/explain_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace batchwright::tune {
namespace {

constexpr double kNotable = 0.02;       // of a step
constexpr double kWorthAChange = 0.05;  // of a step

std::string name(const Observation& seen) { return run::to_string(seen.split); }

std::string waiting_for_data(const Observation& chosen, double share) {
  return fmt::format(
      "{} of a step of {} ({}) is waiting for data: no split mends that, faster data loading does.",
      format_percent(share, 0), name(chosen), format_seconds(chosen.phase("input")));
}

// The device's own clock tells apart what a phase timer cannot: a phase is as long as the device is busy or
// as the host is slow to feed it.
std::string idle_sentence(const Observation& slowest, const Observation& chosen) {
  const double slow_idle = *slowest.idle_seconds(), idle = *chosen.idle_seconds();
  const double more = slowest.seconds.mid - chosen.seconds.mid;
  const double busy_more = more - (slow_idle - idle);
  if (slow_idle - idle > 0.6 * more) {
    const std::string kernels =
        busy_more <= 0 ? "its kernels are busy for no longer"
                       : fmt::format("its kernels are busy for only {} longer", format_seconds(busy_more));
    return fmt::format(
        "{} is slower than {} because the device waits, not because it computes: it stands idle {} of a step "
        "at {} "
        "({}) and {} at {} ({}), while {}; each micro-batch pays its launches and its share of the host "
        "anew.",
        name(slowest), name(chosen), format_percent(slow_idle / slowest.seconds.mid, 0), name(slowest),
        format_seconds(slow_idle), format_percent(idle / chosen.seconds.mid, 0), name(chosen),
        format_seconds(idle), kernels);
  }
  return fmt::format(
      "{} is slower than {} because its kernels are busy for {} longer a step: its matrices are too "
      "small to fill the device.",
      name(slowest), name(chosen), format_seconds(busy_more));
}

// Enqueueing takes as long as the device needs: it waits for launches.
bool launch_bound(const Observation& seen) {
  if (seen.enqueue.empty()) return false;
  double host = 0, device = 0;
  for (const char* phase : {"forward", "backward"}) {
    const auto found = seen.enqueue.find(phase);
    host += found == seen.enqueue.end() ? 0 : found->second;
    device += seen.phase(phase);
  }
  return device > 0 && host > 0.9 * device;
}

std::string phase_sentence(const Explanation& explanation, const Observation& slowest,
                           const Observation& chosen) {
  const Explanation::PhaseCost* most = nullptr;
  double sum = 0;
  for (const auto& cost : explanation.phase_costs) {
    sum += std::max(0.0, cost.seconds_per_micro_step);
    if (most == nullptr || cost.seconds_per_micro_step > most->seconds_per_micro_step) most = &cost;
  }
  std::string text = fmt::format("Every micro-batch more in a step costs about {}",
                                 format_seconds(explanation.fixed_seconds_per_micro_step.value_or(0)));
  if (most != nullptr && sum > 0)
    text +=
        fmt::format(", {} of it in {}", format_percent(most->seconds_per_micro_step / sum, 0), most->phase);
  return text +
         fmt::format(": {} pays it {:.0f} times, {} {}.", name(slowest), slowest.micro_steps, name(chosen),
                     chosen.micro_steps == 1 ? "once" : fmt::format("{:.0f} times", chosen.micro_steps));
}

}  // namespace

std::string sentence_of(const Explanation& explanation, const std::vector<Observation>& observations,
                        const Observation& chosen, const Line* line) {
  const auto slowest = std::max_element(
      observations.begin(), observations.end(),
      [](const Observation& a, const Observation& b) { return a.seconds.mid < b.seconds.mid; });
  if (const double wait = chosen.phase("input") / chosen.seconds.mid; wait > 0.2)
    return waiting_for_data(chosen, wait);
  if (slowest->split == chosen.split) return "";
  if (slowest->device_busy_share && chosen.device_busy_share) return idle_sentence(*slowest, chosen);
  if (launch_bound(*slowest)) {
    return fmt::format(
        "At {} the host takes as long to launch the kernels as the device to run them: {} launches more "
        "work at a time.",
        name(*slowest), name(chosen));
  }
  if (line == nullptr) {
    return explanation.fixed_seconds_per_micro_step ? phase_sentence(explanation, *slowest, chosen) : "";
  }
  const double slow_share = slowest->micro_steps * line->fixed / slowest->seconds.mid;
  const double chosen_share = explanation.shares.at("fixed_per_micro_step");
  if (slow_share - chosen_share > kNotable) {
    if (explanation.fixed_interval && explanation.fixed_interval->low <= 0) {
      return fmt::format(
          "The times vary too much to tell what {} pays for its micro-batches from what it pays for tokens.",
          name(*slowest));
    }
    return fmt::format("Every micro-batch costs {} before its first token: {} of a step at {}, {} at {}.",
                       format_seconds(line->fixed), format_percent(slow_share, 0), name(*slowest),
                       format_percent(chosen_share, 0), name(chosen));
  }
  const double padding = (slowest->padded_tokens - chosen.padded_tokens) * line->slope / slowest->seconds.mid;
  if (padding > kNotable) {
    return fmt::format("{} computes {} more padding a step than {}.", name(*slowest),
                       format_percent(slowest->padded_tokens / chosen.padded_tokens - 1, 0), name(chosen));
  }
  if (!(slowest->seconds.low > chosen.seconds.high)) {
    return fmt::format("The times of {} and {} overlap too much to say why one is slower.", name(*slowest),
                       name(chosen));
  }
  const double dearer =
      slowest->compute_seconds() / slowest->padded_tokens / (chosen.compute_seconds() / chosen.padded_tokens);
  return fmt::format(
      "Neither a fixed cost per micro-batch nor padding explains why {} is slower than {}: a token costs "
      "{:.2f} times "
      "as much there, so the sizes of its matrices suit this device less.",
      name(*slowest), name(chosen), dearer);
}

std::vector<Explanation::Recommendation> recommendations_for(const Observation& chosen) {
  std::vector<Explanation::Recommendation> result;
  const double step = chosen.seconds.mid;
  const auto consider = [&](const char* cause, double seconds, double least_share, const char* change) {
    if (step > 0 && seconds / step > least_share) result.push_back({cause, seconds, seconds / step, change});
  };
  consider("input", chosen.phase("input"), kWorthAChange,
           "load data in the background: DataLoader(num_workers=2 or more, persistent_workers=True)");
  if (chosen.tokens > 0 && chosen.padded_tokens > chosen.tokens) {
    const double compute = chosen.phase("forward") + chosen.phase("backward");
    consider("padding",
             (1 - chosen.tokens / chosen.padded_tokens) * (compute > 0 ? compute : chosen.compute_seconds()),
             kWorthAChange,
             "put examples of similar length into a batch (group_by_length, or a sampler that sorts)");
  }
  consider("optimizer", chosen.phase("optimizer"), 0.15,
           "use a fused optimizer (torch.optim.AdamW(fused=True)) if it is not one yet");
  consider("collective", chosen.phase("collective"), kWorthAChange,
           "reduce gradients once a window (no_sync)");
  consider("residual", chosen.phase("residual"), 0.1,
           "look for what runs between the phases: a log of loss.item() per micro-step, metrics, callbacks");
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return result;
}

}  // namespace batchwright::tune
