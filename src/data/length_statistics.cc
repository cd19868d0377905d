#include "data/length_statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace batchwright::data {
namespace {

constexpr std::int32_t kMaxBins = 32;

std::int32_t quantile(const std::vector<std::int32_t>& sorted, double share) {
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

// Widths a person can read: 1, 2, 4, 8, ...
std::vector<LengthStatistics::Bin> histogram(const std::vector<std::int32_t>& sorted) {
  std::int32_t width = 1;
  while ((sorted.back() - 1) / width >= kMaxBins) width *= 2;
  std::vector<LengthStatistics::Bin> bins(static_cast<std::size_t>((sorted.back() - 1) / width + 1));
  for (std::size_t i = 0; i < bins.size(); ++i) {
    bins[i].low = static_cast<std::int32_t>(i) * width + 1;
    bins[i].high = bins[i].low + width - 1;
  }
  for (const std::int32_t length : sorted) ++bins[static_cast<std::size_t>((length - 1) / width)].rows;
  return bins;
}

}  // namespace

LengthStatistics length_statistics(std::span<const std::int32_t> lengths) {
  LengthStatistics out;
  if (lengths.empty()) return out;
  std::vector<std::int32_t> sorted(lengths.begin(), lengths.end());
  std::sort(sorted.begin(), sorted.end());
  out.rows = static_cast<std::int64_t>(sorted.size());
  out.tokens = std::accumulate(sorted.begin(), sorted.end(), std::int64_t{0});
  out.mean = static_cast<double>(out.tokens) / static_cast<double>(out.rows);
  out.shortest = sorted.front();
  out.median = quantile(sorted, 0.5);
  out.p90 = quantile(sorted, 0.9);
  out.p95 = quantile(sorted, 0.95);
  out.p99 = quantile(sorted, 0.99);
  out.longest = sorted.back();
  out.histogram = histogram(sorted);
  return out;
}

std::vector<std::int32_t> row_lengths(const TokenFile& tokens) {
  std::vector<std::int32_t> lengths(tokens.rows());
  for (std::uint32_t row = 0; row < tokens.rows(); ++row) lengths[row] = tokens.length(row);
  return lengths;
}

Json to_json(const LengthStatistics& statistics) {
  Json bins = Json::array();
  for (const auto& bin : statistics.histogram) {
    bins.push_back({{"low", bin.low}, {"high", bin.high}, {"rows", bin.rows}});
  }
  return {{"rows", statistics.rows},         {"tokens", statistics.tokens}, {"mean", statistics.mean},
          {"shortest", statistics.shortest}, {"median", statistics.median}, {"p90", statistics.p90},
          {"p95", statistics.p95},           {"p99", statistics.p99},       {"longest", statistics.longest},
          {"histogram", std::move(bins)}};
}

}  // namespace batchwright::data
