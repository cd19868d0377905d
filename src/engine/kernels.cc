#include "engine/kernels.h"

#include <cstdlib>
#include <string_view>

namespace batchwright::engine {

namespace baseline {
const Kernels& table();
}
#if defined(BATCHWRIGHT_X86)
namespace avx2 {
const Kernels& table();
}
namespace avx512 {
const Kernels& table();
}
#endif

const Kernels& baseline_kernels() { return baseline::table(); }

const Kernels* avx2_kernels() {
#if defined(BATCHWRIGHT_X86)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2::table();
#endif
  return nullptr;
}

const Kernels* avx512_kernels() {
#if defined(BATCHWRIGHT_X86)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return &avx512::table();
  }
#endif
  return nullptr;
}

const Kernels& best_kernels() {
  const char* wanted = std::getenv("BATCHWRIGHT_KERNELS");
  const std::string_view name = wanted == nullptr ? "" : wanted;
  if (name == "baseline") return baseline_kernels();
  if (name != "avx2" && avx512_kernels() != nullptr) return *avx512_kernels();
  if (avx2_kernels() != nullptr) return *avx2_kernels();
  return baseline_kernels();
}

}  // namespace batchwright::engine
