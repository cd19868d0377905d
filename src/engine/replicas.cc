#include "engine/replicas.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"

namespace batchwright::engine {

void check_same_weights(ProcessGroup& group, const Parameters& parameters, Ops& ops) {
  // The same kernel over the same numbers gives the same bits; machines with other vector units may differ in
  // the last ones.
  const double own[] = {static_cast<double>(parameters.trainable_count()),
                        static_cast<double>(parameters.frozen_count()),
                        ops.sum_of_squares(parameters.frozen_values(), parameters.frozen_count())};
  const std::vector<double> all = group.gather(own);
  for (std::size_t rank = 1; rank < static_cast<std::size_t>(group.size()); ++rank) {
    const double* other = all.data() + 3 * rank;
    const bool same =
        other[0] == all[0] && other[1] == all[1] && std::abs(other[2] - all[2]) <= 1e-5 * all[2];
    if (same) continue;
    throw Error(ErrorKind::InvalidInput, fmt::format("rank {}", rank), "read another model than rank 0",
                "Every machine must hold the same model folder");
  }
}

std::int64_t share_state(ProcessGroup& group, const Parameters& parameters, AdamW& optimizer,
                         LossScaler& scaler, std::int64_t steps_done) {
  const double own[] = {static_cast<double>(steps_done), static_cast<double>(optimizer.steps_done()),
                        scaler.scale(), static_cast<double>(scaler.state().good_steps)};
  const std::vector<double> all = group.gather(own);
  scaler.set_state({all[2], static_cast<std::int64_t>(all[3])});
  optimizer.set_steps_done(static_cast<std::int64_t>(all[1]));
  const std::int64_t count = parameters.trainable_count();
  group.broadcast(parameters.trainable_values(), count);
  if (optimizer.steps_done() > 0) {  // before the first step all are zero
    group.broadcast(optimizer.moment1(), count);
    group.broadcast(optimizer.moment2(), count);
  }
  return static_cast<std::int64_t>(all[0]);
}

}  // namespace batchwright::engine
