#define BATCHWRIGHT_ISA baseline
#define BATCHWRIGHT_ISA_NAME "baseline"
#include "engine/kernels_impl.h"
