#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "run/options.h"
#include "run/protocol.h"

namespace batchwright::run {

// How a trial ended. A failed trial costs that trial only.
enum class Outcome {
  Measured,
  OutOfMemory,
  Crashed,   // the worker died, or spoke something that is not the protocol
  TimedOut,  // no step for so long that the worker must hang
  Rejected,  // it ran, but not with the split that was asked for
  NotTried,
};
std::string_view outcome_name(Outcome outcome);                            // "measured", "out_of_memory", ...
std::string outcome_words(Outcome outcome);                                // "out of memory", for people
Outcome parse_outcome(std::string_view text, const std::string& subject);  // throws InvalidInput

// What one trial runs: warmup_steps untimed steps, then `steps` timed ones, on windows first_step, first_step
// + 1,
// ... of the seeded sampler ("sampled"), or every step on the longest examples of the data ("longest").
struct TrialRequest {
  Split split;
  std::int64_t steps = 1, warmup_steps = 0, first_step = 0;
  std::string batch = "sampled";
  std::string layout = "auto", checkpointing = "none";
  bool operator==(const TrialRequest&) const = default;
};

// One timed optimizer step.
struct TimedStep {
  std::int64_t window =
      0;  // the sampler's step: steps of two splits with the same window saw the same examples
  double seconds = 0;
  std::int64_t tokens = 0, padded_tokens = 0;
  bool operator==(const TimedStep&) const = default;
};

// A finished trial.
struct Trial {
  TrialRequest request;
  Outcome outcome = Outcome::NotTried;
  std::string reason;  // one line: why it is not Measured; empty when it is
  std::vector<TimedStep> steps;
  std::map<std::string, double> phases;     // mean seconds per timed step, by phase name
  std::map<std::string, double> enqueue;    // the host's mean seconds to enqueue a phase (StepReport)
  std::optional<double> device_busy_share;  // of the step's time; not known: absent
  std::optional<std::int64_t> peak_bytes;   // warm-up included
  std::optional<std::int64_t> observed_micro_batch, observed_accumulation_steps;
  double wall_seconds = 0;     // from the request to its end, start-up included
  double startup_seconds = 0;  // of these, until the worker said hello (0: it ran already)
};

Json to_json(const Trial& trial);
Trial trial_from_json(const Json& object, const std::string& subject);  // throws InvalidInput

// Collects the step reports of one running trial.
class TrialRecord {
 public:
  explicit TrialRecord(TrialRequest request);

  void add(const StepReport& step);
  bool complete() const;  // all warm-up and timed steps arrived
  double slowest_step_seconds() const { return slowest_; }
  std::int64_t steps_seen() const { return seen_; }
  // The trial so far. Measured becomes Rejected, with the reason, when what was seen is not what was asked.
  Trial finish(Outcome outcome, std::string reason) const;

 private:
  std::string mismatch() const;

  Trial trial_;
  std::int64_t seen_ = 0;
  double slowest_ = 0;
  std::map<std::string, double> phase_sums_, enqueue_sums_;
  // How often a step of so many micro-steps and examples was seen. The most frequent kind is the split: the
  // first and last windows of an epoch may be short, or hold what the epoch before left over.
  std::map<std::pair<std::int64_t, std::int64_t>, int> windows_;
  std::optional<std::pair<std::int64_t, std::int64_t>> typical_window() const;
};

}  // namespace batchwright::run
