#pragma once

#include <cstddef>

#include "check/config_settings.h"
#include "check/config_shell_words.h"

namespace batchwright::check {

// Decides whose rules a command's arguments follow, by its program and its words, and what --train_batch_size
// means among them.
void classify_arguments(Section& arguments);

// The script's own variables say what its author meant: GLOBAL_BATCH_SIZE=100, NUM_EXAMPLES=12000.
Section variables_of(const ShellScript& script, std::size_t file);

}  // namespace batchwright::check
