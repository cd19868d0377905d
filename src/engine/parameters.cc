#include "engine/parameters.h"

#include <algorithm>
#include <utility>

namespace batchwright::engine {

ParameterId Parameters::declare(std::string name, std::vector<std::int64_t> shape, bool trainable,
                                bool decays) {
  Parameter p{.name = std::move(name),
              .shape = std::move(shape),
              .count = 1,
              .trainable = trainable,
              .decays = decays};
  for (const std::int64_t size : p.shape) p.count *= size;
  std::int64_t& total = trainable ? trainable_count_ : frozen_count_;
  p.offset = total;
  p.part = part_;
  total += p.count;
  all_.push_back(std::move(p));
  return all_.size() - 1;
}

std::int64_t Parameters::parts() const {
  std::int64_t last = 0;
  for (const Parameter& p : all_) last = std::max(last, p.part);
  return last + 1;
}

void Parameters::allocate(DeviceKind device) {
  trainable_ = Buffer(trainable_count_ * 4, false, device);
  frozen_ = Buffer(frozen_count_ * 4, false, device);
}

float* Parameters::value(ParameterId id) const {
  const Parameter& p = all_[id];
  return (p.trainable ? trainable_ : frozen_).floats() + p.offset;
}

float* Parameters::gradient(ParameterId id, float* block) const {
  return all_[id].trainable ? block + all_[id].offset : nullptr;
}

}  // namespace batchwright::engine
