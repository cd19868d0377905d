#include "hardware/calibration.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace batchwright::hardware {
namespace {

Calibration measured() {
  Calibration c;
  c.processor = "test";
  c.threads = 2;
  c.memory_bytes = 1ll << 30;
  c.bandwidth_bytes_per_second = 1e10;
  c.operation_seconds = 1e-6;
  c.measured_by = "test";
  c.products = {{32, 100, 100, 64e-6}, {1024, 100, 100, 1024e-6}};  // 10 and 20 GFLOP/s
  return c;
}

class StoredCalibration : public ::testing::Test {
 protected:
  StoredCalibration() { setenv("BATCHWRIGHT_CALIBRATION", path_.c_str(), 1); }
  ~StoredCalibration() override {
    unsetenv("BATCHWRIGHT_CALIBRATION");
    std::filesystem::remove(path_);
  }
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / "batchwright_calibration_test.json";
};

TEST_F(StoredCalibration, IsWhatThisMachinesCpuIsPlannedWith) {
  std::filesystem::remove(path_);
  EXPECT_NE(this_machine(true).source.find("rule of thumb"), std::string::npos);
  store_calibration(measured());
  const Device device = this_machine(true);
  EXPECT_TRUE(device.is_cpu());
  EXPECT_EQ(device.multiprocessors, 2);
  EXPECT_DOUBLE_EQ(device.fp32_flops, 2 * 20e9);
  ASSERT_EQ(device.rates_by_rows.size(), 2u);
  EXPECT_NEAR(device.rates_by_rows[0].second, 2 * 10e9, 1);
}

TEST_F(StoredCalibration, ADamagedFileIsAnErrorThatNamesIt) {
  for (const char* text : {"{", "{}", R"({"processor": "x", "threads": 0})"}) {
    std::ofstream(path_) << text;
    try {
      stored_calibration();
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(exit_code(e.kind()), 2);
      EXPECT_NE(e.subject().find("calibration_test"), std::string::npos);
    }
  }
}

TEST(Machine, HasMemoryAndThreads) {
  EXPECT_GT(machine_memory_bytes(), 1ll << 20);
  EXPECT_FALSE(processor_name().empty());
}

}  // namespace
}  // namespace batchwright::hardware
