#define BATCHWRIGHT_ISA avx512
#define BATCHWRIGHT_ISA_NAME "avx512"
#include "engine/kernels_impl.h"
