#include "engine/gradient_sum.h"

#include <algorithm>
#include <cstring>

namespace batchwright::engine {
namespace {

// torch.nn.parallel.DistributedDataParallel's first bucket: large enough that a sum is not all latency, small
// enough that the last one, which nothing hides, is short.
constexpr std::int64_t kLeastBucketFloats = (1 << 20) / 4;

}  // namespace

GradientSum::GradientSum(const Parameters& parameters, Ops& ops, ProcessGroup& group)
    : parameters_(parameters), ops_(ops), group_(group) {
  const bool rows_are_addressable = ops.device() == DeviceKind::Cpu;
  std::vector<std::vector<Range>> parts(static_cast<std::size_t>(parameters.parts()));
  for (const Parameter& p : parameters.all()) {
    if (!p.trainable) continue;
    std::vector<Range>& ranges = parts[static_cast<std::size_t>(p.part)];
    if (p.row_per_token && rows_are_addressable) {
      tables_.push_back({p.offset, p.shape.back()});
    } else if (!ranges.empty() && ranges.back().end == p.offset) {
      ranges.back().end += p.count;
    } else {
      ranges.push_back({p.offset, p.offset + p.count});
    }
  }
  std::int64_t floats = 0;
  for (std::size_t part = parts.size(); part-- > 0;) {
    if (parts[part].empty()) continue;
    if (buckets_.empty() || floats >= kLeastBucketFloats) {
      buckets_.emplace_back();
      floats = 0;
    }
    Bucket& bucket = buckets_.back();
    bucket.last_part = static_cast<std::int64_t>(part);
    for (const Range& range : parts[part]) {
      bucket.ranges.push_back(range);
      floats += range.end - range.begin;
    }
  }
}

void GradientSum::start(std::vector<float*> blocks) {
  blocks_ = std::move(blocks);
  for (Bucket& bucket : buckets_) bucket.threads.store(0, std::memory_order_relaxed);
}

// The last thread to leave a bucket begins its sum. It left all earlier ones before, and so did every other
// thread: the buckets are begun in their order.
void GradientSum::finished(std::int64_t part) {
  for (Bucket& bucket : buckets_) {
    if (bucket.last_part == part && bucket.threads.fetch_add(1) + 1 == blocks_.size()) begin(bucket);
  }
}

void GradientSum::finished_all() {
  for (std::int64_t part = parameters_.parts(); part-- > 0;) finished(part);
}

void GradientSum::begin(const Bucket& bucket) {
  for (const Range& range : bucket.ranges) {
    const std::int64_t count = range.end - range.begin;
    for (std::size_t other = 1; other < blocks_.size(); ++other) {
      ops_.add(blocks_[other] + range.begin, count, blocks_.front() + range.begin);
    }
    group_.begin_sum(blocks_.front() + range.begin, count);
  }
}

void GradientSum::finish(std::span<const std::int32_t> token_ids) {
  if (tables_.empty()) return group_.finish_sums();
  sum_tables(token_ids);
}

void GradientSum::sum_tables(std::span<const std::int32_t> token_ids) {
  std::vector<std::int32_t> ids(token_ids.begin(), token_ids.end());
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  std::int64_t width = 0;
  for (const Table& table : tables_) width += table.width;
  const std::int64_t count = static_cast<std::int64_t>(ids.size()) * width;
  if (rows_.bytes() < count * 4) rows_ = Buffer(count * 4, false, DeviceKind::Cpu);
  const auto for_rows = [&](const auto& visit) {
    float* packed = rows_.floats();
    for (const Table& table : tables_) {
      for (const std::int32_t id : ids) {
        visit(table.begin + id * table.width, table.width, packed);
        packed += table.width;
      }
    }
  };
  for_rows([&](std::int64_t row, std::int64_t floats, float* packed) {
    std::memcpy(packed, blocks_.front() + row, static_cast<std::size_t>(floats) * 4);
    for (std::size_t other = 1; other < blocks_.size(); ++other)
      ops_.add(blocks_[other] + row, floats, packed);
  });
  group_.begin_sum(rows_.floats(), count);
  group_.finish_sums();
  for_rows([&](std::int64_t row, std::int64_t floats, const float* packed) {
    std::memcpy(blocks_.front() + row, packed, static_cast<std::size_t>(floats) * 4);
  });
}

}  // namespace batchwright::engine
