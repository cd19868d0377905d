#include "tune/token_cuts.h"

#include <algorithm>
#include <cmath>

namespace batchwright::tune {
namespace {

constexpr std::int64_t kRounds = 2;
constexpr std::int64_t kBudgetUnit = 64;  // tokens: finer steps could not be told apart

run::TrialRequest request_of(const SearchOptions& options, const run::Split& cut) {
  run::TrialRequest request;
  request.split = cut;
  request.layout = cut.is_token_cut() ? "packed" : options.layout;
  request.checkpointing = options.checkpointing;
  return request;
}

bool has_run(std::span<const run::Trial> trials, const run::TrialRequest& request) {
  return std::any_of(trials.begin(), trials.end(),
                     [&](const run::Trial& trial) { return trial.request == request; });
}

}  // namespace

std::vector<run::Split> token_cuts(double mean_tokens_of_example, std::int64_t longest_example,
                                   std::int64_t effective_batch) {
  std::vector<run::Split> cuts;
  const double window = mean_tokens_of_example * static_cast<double>(effective_batch);
  for (const double share : {0.5, 0.25, 0.125}) {
    const auto units = std::llround(std::ceil(window * share / static_cast<double>(kBudgetUnit)));
    const run::Split cut = run::Split::of_tokens(units * kBudgetUnit);
    if (cut.micro_tokens < longest_example || (!cuts.empty() && cuts.back() == cut)) break;
    cuts.push_back(cut);
  }
  return cuts;
}

std::int64_t token_cut_steps(const SearchOptions& options) {
  if (options.token_cuts.empty()) return 0;
  const auto runs = static_cast<std::int64_t>(options.token_cuts.size()) + 1;
  return kRounds * runs * (options.warmup_steps + options.first_round_steps);
}

std::optional<run::TrialRequest> next_token_cut_trial(const SearchOptions& options, const run::Split& chosen,
                                                      std::span<const run::Trial> trials) {
  const std::vector<run::Split>& cuts = options.token_cuts;
  const bool probe = options.probe_longest && options.memory_limit_bytes > 0;
  for (std::size_t i = 0; probe && i < cuts.size(); ++i) {
    run::TrialRequest request = request_of(options, cuts[i]);
    request.batch = "longest";
    if (!has_run(trials, request)) return request;
  }
  const std::vector<SplitState> states = split_states(cuts, trials);
  std::vector<run::Split> order;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    if (!states[i].out) order.push_back(cuts[i]);
  }
  if (order.empty()) return std::nullopt;
  order.insert(order.begin(), chosen);
  for (std::int64_t number = 0; number < kRounds; ++number) {
    // Behind every round that the exact splits could run.
    const Round round = round_at(options, options.most_rounds + number);
    for (const run::Split& split : order) {
      run::TrialRequest request = request_of(options, split);
      request.warmup_steps = options.warmup_steps;
      request.steps = options.first_round_steps;
      request.first_step = round.first_window;
      if (!has_run(trials, request)) return request;
    }
    std::reverse(order.begin(), order.end());
  }
  return std::nullopt;
}

}  // namespace batchwright::tune
