#pragma once

#include <cmath>
#include <cstdint>

namespace batchwright::engine {

// Keeps small gradients above the least float16 by training on loss * scale, as torch.amp.GradScaler does:
// the scale halves after a step whose gradient overflowed, and doubles after `interval` steps in a row
// without one, unless that would overflow float32. The caller divides the gradient by scale() before
// clipping, and skips the update of a step that overflowed.
class LossScaler {
 public:
  // Its whole state, for checkpoints.
  struct State {
    double scale = 1;
    std::int64_t good_steps = 0;  // since the last overflow or growth
  };

  LossScaler() = default;  // scales by 1 for ever
  LossScaler(double scale, std::int64_t interval) : state_{scale, 0}, interval_(interval) {}

  bool scales() const { return interval_ > 0; }
  double scale() const { return state_.scale; }
  const State& state() const { return state_; }
  void set_state(const State& state) { state_ = state; }

  void update(bool overflowed) {
    if (!scales()) return;
    if (overflowed) {
      state_ = {state_.scale * kBackoff, 0};
    } else if (++state_.good_steps == interval_) {
      const double grown = state_.scale * kGrowth;
      state_ = {std::isfinite(static_cast<float>(grown)) ? grown : state_.scale, 0};
    }
  }

 private:
  static constexpr double kGrowth = 2, kBackoff = 0.5;  // GradScaler's growth_factor and backoff_factor

  State state_;
  std::int64_t interval_ = 0;
};

}  // namespace batchwright::engine
