#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "run/trial_runner.h"
#include "tune/search.h"

namespace batchwright::tune {

// A machine whose laws the test knows: what the search should find is computed, not guessed.
struct Machine {
  double fixed_seconds = 0.004;     // a micro-step
  double token_seconds = 20e-6;     // a padded token
  double optimizer_seconds = 0.01;  // a step
  double tokens_per_example = 30;   // on the sampled windows; the longest examples have 128
  double noise = 0.02;              // standard deviation of the logarithm of a step's time
  double window_spread = 0.1;       // of the logarithm of a window's tokens
  std::function<double(std::int64_t)> shape = [](std::int64_t) {
    return 1.0;
  };  // cost of a token by micro-batch
  std::int64_t base_bytes = 200 << 20, token_bytes = 40000;
  std::int64_t limit_bytes = 0;
  bool every_batch_is_longest = false;  // as far as memory is concerned
  std::int64_t effective_batch = 32;    // examples a step of a token cut
  double token_cut_gain = 1;  // step time of a token cut relative to the split with as many micro-steps
  std::uint64_t seed = 0;
};

class SimulatedWorkload : public run::Workload {
 public:
  explicit SimulatedWorkload(Machine machine)
      : machine_(std::move(machine)), random_(machine_.seed, RandomUse::Test, 99) {}

  // Without noise, on a typical window.
  double true_seconds(const run::Split& split) const { return seconds(split, machine_.tokens_per_example); }
  std::int64_t peak_bytes(std::int64_t micro_batch) const {
    return machine_.base_bytes +
           static_cast<std::int64_t>(128.0 * static_cast<double>(micro_batch * machine_.token_bytes));
  }

  run::Trial run(const run::TrialRequest& request) override {
    if (before) before(request);
    ran.push_back(request);
    if (failure) {
      if (const auto failed = failure(request)) return *failed;
    }
    run::TrialRecord record(request);
    double wall = 0;
    const run::Split split = as_split(request.split);
    if (machine_.limit_bytes > 0 && (request.batch == "longest" || machine_.every_batch_is_longest) &&
        peak_bytes(split.micro_batch) > machine_.limit_bytes) {
      return record.finish(run::Outcome::OutOfMemory, "the limit is reached");
    }
    for (std::int64_t step = 0; step < request.warmup_steps + request.steps; ++step) {
      run::StepReport report;
      report.step = step + 1;
      report.micro_steps = split.accumulation_steps;
      report.examples = split.effective_batch();
      const double tokens_per_example =
          request.batch == "longest" ? 128
                                     : machine_.tokens_per_example * window_factor(request.first_step + step);
      report.tokens = report.padded_tokens =
          std::llround(tokens_per_example * static_cast<double>(report.examples));
      report.seconds = seconds(split, tokens_per_example) * std::exp(machine_.noise * random_.normal());
      if (request.split.is_token_cut()) report.seconds *= machine_.token_cut_gain;
      report.phases = {{"optimizer", machine_.optimizer_seconds}};
      report.peak_bytes = peak_bytes(split.micro_batch);
      record.add(report);
      wall += report.seconds;
    }
    run::Trial trial = record.finish(run::Outcome::Measured, "");
    trial.wall_seconds = wall;
    now += wall;
    return trial;
  }
  std::optional<run::Hello> hello() const override { return std::nullopt; }

  std::vector<run::TrialRequest> ran;
  std::function<void(const run::TrialRequest&)> before;
  std::function<std::optional<run::Trial>(const run::TrialRequest&)> failure;
  double now = 0;  // the simulated clock

 private:
  // A token cut runs as the split with that many tokens a micro-batch.
  run::Split as_split(const run::Split& split) const {
    if (!split.is_token_cut()) return split;
    const auto micro = std::max<std::int64_t>(
        1, std::llround(static_cast<double>(split.micro_tokens) / machine_.tokens_per_example));
    return {micro, (machine_.effective_batch + micro - 1) / micro, 1};
  }
  double seconds(const run::Split& split, double tokens_per_example) const {
    const double examples = static_cast<double>(split.effective_batch());
    return static_cast<double>(split.accumulation_steps) * machine_.fixed_seconds +
           examples * tokens_per_example * machine_.token_seconds * machine_.shape(split.micro_batch) +
           machine_.optimizer_seconds;
  }
  double window_factor(std::int64_t window) const {
    RandomStream random(machine_.seed, RandomUse::Test, static_cast<std::uint64_t>(window));
    return std::exp(machine_.window_spread * random.normal());
  }

  Machine machine_;
  RandomStream random_;
};

inline std::vector<run::Split> splits_of(std::int64_t effective_batch) {
  std::vector<run::Split> splits;
  for (std::int64_t micro = effective_batch; micro >= 1; --micro) {
    if (effective_batch % micro == 0) splits.push_back({micro, effective_batch / micro, 1});
  }
  return splits;
}

inline SearchOptions options_for(std::int64_t effective_batch, std::int64_t limit_bytes = 0) {
  SearchOptions options;
  options.effective_batch = effective_batch;
  options.memory_limit_bytes = limit_bytes;
  return options;
}

// Runs the search to its end without a folder.
inline std::vector<run::Trial> search_to_the_end(const SearchOptions& options,
                                                 const std::vector<run::Split>& splits,
                                                 SimulatedWorkload& workload) {
  std::vector<run::Trial> trials;
  while (const auto next = search_state(options, splits, trials).next) {
    trials.push_back(workload.run(*next));
    if (trials.size() > 2000) throw Error(ErrorKind::Internal, "search", "does not end");
  }
  return trials;
}

}  // namespace batchwright::tune
