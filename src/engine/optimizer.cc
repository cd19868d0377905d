#include "engine/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace batchwright::engine {

double learning_rate_at(const run::TrainingOptions& options, std::int64_t step, std::int64_t total) {
  const auto warmup = static_cast<double>(options.warmup_steps), now = static_cast<double>(step);
  if (now < warmup) return options.learning_rate * now / std::max(1.0, warmup);
  const double progress = (now - warmup) / std::max(1.0, static_cast<double>(total) - warmup);
  switch (options.schedule) {
    case run::Schedule::Constant:
      return options.learning_rate;
    case run::Schedule::Linear:
      return options.learning_rate * std::max(0.0, 1 - progress);
    case run::Schedule::Cosine:
      return options.learning_rate * std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * progress)));
  }
  return options.learning_rate;
}

AdamW::AdamW(const Parameters& parameters, const run::TrainingOptions& options, Ops& ops)
    : parameters_(parameters),
      options_(options),
      ops_(ops),
      moment1_(parameters.trainable_count() * 4, true, ops.device()),
      moment2_(parameters.trainable_count() * 4, true, ops.device()) {
  for (const Parameter& p : parameters.all()) {
    if (!p.trainable) continue;
    if (!segments_.empty() && segments_.back().decays == p.decays && segments_.back().end == p.offset) {
      segments_.back().end += p.count;
    } else {
      segments_.push_back({p.offset, p.offset + p.count, p.decays});
    }
  }
}

void AdamW::update(std::int64_t begin, std::int64_t end, const float* gradient, float scale,
                   double learning_rate) const {
  const auto t = static_cast<double>(steps_done_);
  const double correction1 = 1 - std::pow(options_.adam_beta1, t),
               correction2 = 1 - std::pow(options_.adam_beta2, t);
  for (const Segment& segment : segments_) {
    const std::int64_t from = std::max(begin, segment.begin), to = std::min(end, segment.end);
    if (from >= to) continue;
    ops_.adamw({.value = parameters_.trainable_values() + from,
                .gradient = gradient + from,
                .moment1 = moment1_.floats() + from,
                .moment2 = moment2_.floats() + from,
                .count = to - from,
                .gradient_scale = scale,
                .learning_rate = static_cast<float>(learning_rate),
                .beta1 = static_cast<float>(options_.adam_beta1),
                .beta2 = static_cast<float>(options_.adam_beta2),
                .epsilon = static_cast<float>(options_.adam_epsilon),
                .weight_decay = segment.decays ? static_cast<float>(options_.weight_decay) : 0.0f,
                .bias_correction1 = static_cast<float>(correction1),
                .bias_correction2 = static_cast<float>(correction2)});
  }
}

double AdamW::step(Workers& workers, const std::vector<float*>& gradients, double learning_rate,
                   double loss_scale, bool may_skip) {
  const std::int64_t count = parameters_.trainable_count(), team = workers.size();
  // Slices end at multiples of 16 floats, so that no two threads write to one cache line.
  const auto slice = [&](std::int64_t i) { return std::min(count, (count * i / team + 15) / 16 * 16); };
  std::vector<double> squares(static_cast<std::size_t>(team));
  workers.run([&](int thread) {
    const std::int64_t begin = slice(thread), length = slice(thread + 1) - begin;
    for (std::size_t other = 1; other < gradients.size(); ++other) {
      ops_.add(gradients[other] + begin, length, gradients[0] + begin);
    }
    ops_.round_stored(gradients[0] + begin, length);
    squares[static_cast<std::size_t>(thread)] = ops_.sum_of_squares(gradients[0] + begin, length);
  });
  double total = 0;
  for (const double s : squares) total += s;
  const double norm = std::sqrt(total) / loss_scale;
  if (may_skip && !std::isfinite(norm)) return norm;
  ++steps_done_;
  // torch.nn.utils.clip_grad_norm_: max_norm / (norm + 1e-6), at most 1.
  const double scale = options_.clip > 0 ? std::min(1.0, options_.clip / (norm + 1e-6)) : 1.0;
  workers.run([&](int thread) {
    const std::int64_t begin = slice(thread), end = slice(thread + 1);
    update(begin, end, gradients[0], static_cast<float>(scale / loss_scale), learning_rate);
    for (float* stored : {parameters_.trainable_values(), moment1(), moment2()}) {
      ops_.round_stored(stored + begin, end - begin);
    }
  });
  return norm;
}

}  // namespace batchwright::engine
