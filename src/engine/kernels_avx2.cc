#define BATCHWRIGHT_ISA avx2
#define BATCHWRIGHT_ISA_NAME "avx2"
#include "engine/kernels_impl.h"
