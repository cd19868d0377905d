#include "engine/gradient_sum.h"

#include <algorithm>
#include <cstring>

namespace batchwright::engine {

GradientSum::GradientSum(const Parameters& parameters, Ops& ops, ProcessGroup& group)
    : parameters_(parameters), ops_(ops), group_(group) {
  const bool rows_are_addressable = ops.device() == DeviceKind::Cpu;
  for (const Parameter& p : parameters.all()) {
    if (!p.trainable) continue;
    if (p.row_per_token && rows_are_addressable) {
      tables_.push_back({p.offset, p.shape.back()});
    } else if (!dense_.empty() && dense_.back().end == p.offset) {
      dense_.back().end += p.count;
    } else {
      dense_.push_back({p.offset, p.offset + p.count});
    }
  }
}

void GradientSum::run(Workers& workers, const std::vector<float*>& blocks,
                      std::span<const std::int32_t> token_ids) {
  float* total = blocks.front();
  if (blocks.size() > 1) {
    const std::int64_t count = parameters_.trainable_count(), team = workers.size();
    // Slices end at multiples of 16 floats, so that no two threads write to one cache line.
    const auto slice = [&](std::int64_t i) { return std::min(count, (count * i / team + 15) / 16 * 16); };
    workers.run([&](int thread) {
      const std::int64_t begin = slice(thread), length = slice(thread + 1) - begin;
      for (std::size_t other = 1; other < blocks.size(); ++other) {
        ops_.add(blocks[other] + begin, length, total + begin);
      }
    });
  }
  for (const Range& range : dense_) group_.begin_sum(total + range.begin, range.end - range.begin);
  std::vector<std::int32_t> ids;
  std::int64_t width = 0;
  for (const Table& table : tables_) width += table.width;
  if (width > 0) {
    ids.assign(token_ids.begin(), token_ids.end());
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    const std::int64_t bytes = static_cast<std::int64_t>(ids.size()) * width * 4;
    if (rows_.bytes() < bytes) rows_ = Buffer(bytes, false, DeviceKind::Cpu);
  }
  const auto for_rows = [&](const auto& copy) {
    float* packed = rows_.floats();
    for (const Table& table : tables_) {
      for (const std::int32_t id : ids) {
        copy(total + table.begin + id * table.width, packed, static_cast<std::size_t>(table.width) * 4);
        packed += table.width;
      }
    }
  };
  for_rows([](float* row, float* packed, std::size_t bytes) { std::memcpy(packed, row, bytes); });
  if (width > 0) group_.begin_sum(rows_.floats(), static_cast<std::int64_t>(ids.size()) * width);
  group_.finish_sums();
  for_rows([](float* row, float* packed, std::size_t bytes) { std::memcpy(row, packed, bytes); });
}

}  // namespace batchwright::engine
