#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "hardware/gpu.h"

namespace batchwright::hardware {

// The time of one matrix product [rows, inner] x [inner, columns] in fp32 on one thread of this machine,
// every other thread busy with the same.
struct ProductTiming {
  std::int64_t rows = 0, columns = 0, inner = 0;
  double seconds = 0;

  double flops() const {  // a second, of one thread
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) * static_cast<double>(inner) /
           seconds;
  }
};

// What `batchwright calibrate` measured on this machine.
struct Calibration {
  std::string processor;
  int threads = 0;
  std::int64_t memory_bytes = 0;
  double bandwidth_bytes_per_second = 0;  // reading two arrays and writing a third
  double operation_seconds = 0;           // one small operation, from call to return
  std::vector<ProductTiming> products;
  std::string measured_by;  // the program and library that ran the products

  double best_flops() const;  // of one thread
};

// $BATCHWRIGHT_CALIBRATION, else batchwright/calibration.json under $XDG_DATA_HOME or ~/.local/share.
std::filesystem::path calibration_path();

Json to_json(const Calibration& calibration);
Calibration calibration_from_json(const Json& document, const std::string& subject);

// Nothing when no calibration is stored. Throws InvalidInput when the file is damaged.
std::optional<Calibration> stored_calibration();
void store_calibration(const Calibration& calibration);

// The device `--gpu auto` and `cpu` mean: this machine's GPU when the driver names one that the table knows
// (auto only), else its CPU, calibrated or by rule of thumb (its `source` says which).
Device this_machine(bool cpu_only);

// /proc/meminfo and /proc/cpuinfo.
std::int64_t machine_memory_bytes();
std::string processor_name();

}  // namespace batchwright::hardware
