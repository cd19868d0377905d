#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "engine/kernels.h"

// A test of every instruction set's kernels that this machine can run.
namespace batchwright::engine::test {

inline std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> result = {&baseline_kernels()};
  for (const Kernels* kernels : {avx2_kernels(), avx512_kernels()}) {
    if (kernels != nullptr) result.push_back(kernels);
  }
  return result;
}

inline std::vector<float> random_values(std::size_t count, std::uint64_t stream) {
  RandomStream random(11, RandomUse::Test, stream);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(random.normal());
  return values;
}

class KernelsTest : public ::testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& kernels = *GetParam();
};

inline std::string kernels_name(const ::testing::TestParamInfo<const Kernels*>& one) {
  return std::string(one.param->name);
}

}  // namespace batchwright::engine::test
