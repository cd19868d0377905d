#include "tune/fit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace batchwright::tune {
namespace {

struct Peak {
  double examples = 0, bytes = 0;  // examples in memory at once
};

double examples_at_once(const SearchOptions& options, const run::Split& split) {
  if (split.is_token_cut()) return static_cast<double>(split.micro_tokens);  // only compared among themselves
  const std::int64_t side_by_side = split.micro_batch < options.parallel_micro_batches
                                        ? std::min(split.accumulation_steps, options.parallel_micro_batches)
                                        : 1;
  return static_cast<double>(split.micro_batch * side_by_side);
}

// Line through the peaks of the two largest micro-batches: the smallest ones may peak elsewhere (in the
// optimizer).
std::optional<double> predicted_bytes(std::vector<Peak> peaks, double examples) {
  if (peaks.size() < 2) return std::nullopt;
  std::sort(peaks.begin(), peaks.end(), [](const Peak& a, const Peak& b) { return a.examples > b.examples; });
  const auto other = std::find_if(peaks.begin(), peaks.end(),
                                  [&](const Peak& peak) { return peak.examples < peaks[0].examples; });
  if (other == peaks.end()) return std::nullopt;
  const double slope = (peaks[0].bytes - other->bytes) / (peaks[0].examples - other->examples);
  return peaks[0].bytes + std::max(slope, 0.0) * (examples - peaks[0].examples);
}

bool known_to_fit(const SearchOptions& options, const SplitState& state) {
  return options.probe_longest ? state.fits_longest : state.measured();
}

std::vector<Peak> measured_peaks(const SearchOptions& options, std::span<const run::Split> splits,
                                 std::span<const SplitState> states) {
  std::vector<Peak> peaks;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    const auto& bytes = options.probe_longest ? states[i].longest_peak_bytes : states[i].sampled_peak_bytes;
    if (known_to_fit(options, states[i]) && bytes) {
      peaks.push_back({examples_at_once(options, splits[i]), static_cast<double>(*bytes)});
    }
  }
  return peaks;
}

// A prediction this far above the limit is not put to the test where a test is a start of its own.
constexpr double kSurelyAbove = 1.1;

// The next split to try among `open`, the ones between the known failure and the known fit, largest first;
// nullopt when all of them surely need too much.
std::optional<std::size_t> next_probe(const SearchOptions& options, std::span<const run::Split> splits,
                                      const std::vector<Peak>& peaks, const std::vector<std::size_t>& open,
                                      bool prediction_failed) {
  const double limit = static_cast<double>(options.memory_limit_bytes);
  if (options.starts_are_dear && limit > 0) {
    // Every split that fits will be timed anyway: going up one by one costs nothing, and one failure ends it.
    const auto nearest = predicted_bytes(peaks, examples_at_once(options, splits[open.back()]));
    if (nearest && *nearest > kSurelyAbove * limit) return std::nullopt;
    return open.back();
  }
  if (peaks.size() == 1 && limit > 0 && !prediction_failed) {
    // The second point: four times the first is far enough away for a slope, and still cheap.
    for (auto i = open.rbegin(); i != open.rend(); ++i) {
      if (examples_at_once(options, splits[*i]) >= 4 * peaks[0].examples) return *i;
    }
    return open.back();
  }
  if (prediction_failed || limit <= 0 || peaks.size() < 2) return open[open.size() / 2];
  for (const std::size_t i : open) {
    const auto bytes = predicted_bytes(peaks, examples_at_once(options, splits[i]));
    if (bytes && *bytes <= limit) return i;
  }
  return open.back();  // none is predicted to fit: show it on the nearest
}

}  // namespace

FitBoundary fit_boundary(const SearchOptions& options, std::span<const run::Split> splits,
                         std::span<const SplitState> states) {
  FitBoundary boundary;
  for (std::size_t i = 0; i < splits.size(); ++i) {
    if (states[i].outcome == run::Outcome::OutOfMemory) boundary.smallest_fail = i;
    if (known_to_fit(options, states[i]) && !states[i].out && !boundary.largest_fit) boundary.largest_fit = i;
  }
  const std::size_t begin = boundary.smallest_fail ? *boundary.smallest_fail + 1 : 0;
  std::vector<std::size_t> open;
  for (std::size_t i = begin; i < boundary.largest_fit.value_or(splits.size()); ++i) {
    if (!states[i].out) open.push_back(i);
  }
  if (open.empty()) return boundary;
  if (!boundary.largest_fit) {
    const bool try_largest = options.memory_limit_bytes == 0 && !boundary.smallest_fail;
    // A probe of the longest examples is cheapest at the smallest split; a trial of a script costs the same
    // anywhere.
    boundary.probe = try_largest ? open.front() : options.probe_longest ? open.back() : open[open.size() / 2];
    return boundary;
  }
  const std::vector<Peak> peaks = measured_peaks(options, splits, states);
  boundary.probe = next_probe(options, splits, peaks, open, boundary.smallest_fail.has_value());
  if (!boundary.probe) {
    const auto bytes = predicted_bytes(peaks, examples_at_once(options, splits[open.back()]));
    boundary.predicted_bytes = static_cast<std::int64_t>(*bytes);
  }
  return boundary;
}

}  // namespace batchwright::tune
