#pragma once

namespace batchwright {

// Cores in this process's affinity mask: what `taskset` and containers leave of the machine. At least 1.
int usable_cores();

}  // namespace batchwright
