#include "hardware/gpu.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"

namespace batchwright::hardware {
namespace {

TEST(Devices, EveryRowIsCompleteAndPlausible) {
  EXPECT_GE(known_devices().size(), 50u);
  for (const Device& device : known_devices()) {
    EXPECT_GT(device.memory_bytes, 4ll << 30) << device.name;
    EXPECT_LE(device.usable_bytes, device.memory_bytes) << device.name;
    EXPECT_GT(device.usable_bytes, device.memory_bytes / 10 * 9) << device.name;
    EXPECT_GT(device.bandwidth_bytes_per_second, 1e11) << device.name;
    EXPECT_GT(device.fp32_flops, 1e12) << device.name;
    EXPECT_GE(device.fp16_flops, device.fp32_flops) << device.name;
    if (device.measured_gemm_flops) {
      // In 16 bits: bf16, or fp16 where there is no bf16.
      EXPECT_LT(*device.measured_gemm_flops, std::max(device.bf16_flops, device.fp16_flops)) << device.name;
    }
    EXPECT_FALSE(device.source.empty()) << device.name;
  }
}

TEST(Devices, AreFoundByTheNamesPeopleType) {
  EXPECT_EQ(find_device("t4").name, "T4");
  EXPECT_EQ(find_device("NVIDIA A100-SXM4-80GB").name, "A100 SXM4 80GB");
  EXPECT_EQ(find_device("h100").name, "H100 SXM5");
  EXPECT_EQ(find_device("RTX4090").name, "RTX 4090");
  EXPECT_EQ(find_device("RTX 4080").name, "RTX 4080");
  EXPECT_EQ(find_device("NVIDIA A800-SXM4-80GB").name, "A800 SXM4 80GB");
  EXPECT_EQ(find_device("NVIDIA GeForce RTX 3090").name, "RTX 3090");
  EXPECT_EQ(find_device("Tesla V100-SXM2-32GB").name, "V100 SXM2 32GB");
  EXPECT_EQ(find_device("NVIDIA H100 80GB HBM3").name, "H100 SXM5");
  EXPECT_EQ(find_device("RTX 3060").name, "RTX 3060 12GB");
  EXPECT_EQ(find_device("NVIDIA GeForce RTX 4070 Ti SUPER").name, "RTX 4070 Ti SUPER");
  EXPECT_EQ(find_device("T4").bf16_flops, 0);  // Turing has no bf16
}

TEST(Devices, OneThatIsNotInTheTableIsAnErrorAndCanBeDescribed) {
  EXPECT_THROW(find_device("A1000000"), Error);
  const Device device = device_from_json(
      parse_json(R"({"name": "X", "memory_gib": 12, "bandwidth_gb_per_s": 300, "bf16_tflops": 50})", "x"),
      "x");
  EXPECT_EQ(device.memory_bytes, 12ll << 30);
  EXPECT_DOUBLE_EQ(device.flops(Arithmetic::Fp16), 50e12);
  EXPECT_THROW(device_from_json(parse_json(R"({"memory_gib": 12})", "x"), "x"), Error);
  EXPECT_THROW(device_from_json(parse_json(R"({"memory_gib": -1, "bandwidth_gb_per_s": 3})", "x"), "x"),
               Error);
  EXPECT_THROW(device_from_json(parse_json(R"({"memory": 12})", "x"), "x"), Error);
}

}  // namespace
}  // namespace batchwright::hardware
