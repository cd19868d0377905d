#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"

namespace batchwright::hardware {

// The number type in which a device multiplies matrices.
enum class Arithmetic { Fp32, Tf32, Fp16, Bf16 };

std::string_view arithmetic_name(Arithmetic arithmetic);

// What is known of one device: the data sheet and, where somebody measured it, what it reaches. Rates are
// dense (no sparsity). Source: src/hardware/gpus.csv, one source a row.
struct Device {
  std::string name;
  std::string architecture;       // "Ampere"; "CPU"
  std::int64_t memory_bytes = 0;  // nominal
  std::int64_t usable_bytes = 0;  // what a process can have of it; see usable_fraction in gpu.cc
  double bandwidth_bytes_per_second = 0;
  double fp32_flops = 0, tf32_flops = 0, fp16_flops = 0, bf16_flops = 0;  // a second; 0: cannot
  std::optional<double> measured_gemm_flops;  // the best bf16 matrix product that was measured
  double link_bytes_per_second = 0;           // to a neighbour, one direction
  int multiprocessors = 0;                    // of a CPU: threads
  double operation_seconds = 0;               // the host's cost of one small operation; 0: not known
  // Measured: rows of a product and the rate it reaches, ascending; empty when nobody measured (calibrate
  // does).
  std::vector<std::pair<double, double>> rates_by_rows;
  std::string source;

  double flops(Arithmetic arithmetic) const;  // 0 when the device has no such arithmetic
  bool is_cpu() const { return architecture == "CPU"; }
};

// Every device of the table, in its order.
const std::vector<Device>& known_devices();

// By name or alias, ignoring case, spaces, '-' and '_'. Throws Usage naming the nearest and how to describe
// a device that is not in the table.
const Device& find_device(std::string_view name);

// A device that the user describes: {"name", "memory_gib", "bandwidth_gb_per_s", "bf16_tflops", ...} with the
// table's column names. Throws InvalidInput naming the field.
Device device_from_json(const Json& document, const std::string& subject);

}  // namespace batchwright::hardware
