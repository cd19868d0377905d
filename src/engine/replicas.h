#pragma once

#include <cstdint>

#include "engine/loss_scaler.h"
#include "engine/ops.h"
#include "engine/optimizer.h"
#include "engine/parameters.h"
#include "engine/process_group.h"

namespace batchwright::engine {

// Every rank holds a replica of the model, and all of them must hold the same numbers.

// Throws InvalidInput naming the rank whose frozen weights differ from rank 0's: it read another model.
void check_same_weights(ProcessGroup& group, const Parameters& parameters, Ops& ops);

// Gives every rank rank 0's trainable weights, optimizer and loss scale, and its number of finished steps,
// which is returned.
std::int64_t share_state(ProcessGroup& group, const Parameters& parameters, AdamW& optimizer,
                         LossScaler& scaler, std::int64_t steps_done);

}  // namespace batchwright::engine
