#include "hardware/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"

namespace batchwright::hardware {
namespace {

// Rules of thumb for a core without a calibration: 2 fused multiply-adds of 8 floats a cycle at 2.5 GHz, half
// of it reached; two memory channels.
constexpr double kCoreFlops = 2.5e9 * 32 / 2, kGuessedBandwidth = 20e9;
// From call to return in PyTorch, as its profiler shows on servers of these years.
constexpr double kGuessedOperationSeconds = 5e-6;

std::string value_of_line(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

// The driver lists each GPU under /proc, whether or not its tools are installed.
std::string driver_gpu_name() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    return value_of_line((entry.path() / "information").c_str(), "Model");
  }
  return "";
}

// Rows, and what the shapes measured with them reach, over all threads: the upper quartile, and never less
// than with fewer rows, since another process can only lower a rate.
std::vector<std::pair<double, double>> rates_by_rows(const Calibration& calibration) {
  std::map<std::int64_t, std::vector<double>> rates;
  for (const ProductTiming& p : calibration.products)
    rates[p.rows].push_back(p.flops() * calibration.threads);
  std::vector<std::pair<double, double>> curve;
  for (auto& [rows, values] : rates) {
    std::sort(values.begin(), values.end());
    const double reached = values[values.size() * 3 / 4];
    curve.emplace_back(static_cast<double>(rows),
                       curve.empty() ? reached : std::max(reached, curve.back().second));
  }
  return curve;
}

Device cpu_device() {
  Device device;
  device.architecture = "CPU";
  device.memory_bytes = machine_memory_bytes();
  device.usable_bytes = device.memory_bytes / 10 * 9;
  device.multiprocessors = usable_cores();
  const auto calibration = stored_calibration();
  if (calibration) {
    device.multiprocessors = calibration->threads;
    device.fp32_flops = calibration->best_flops() * calibration->threads;
    device.rates_by_rows = rates_by_rows(*calibration);
    device.bandwidth_bytes_per_second = calibration->bandwidth_bytes_per_second;
    device.operation_seconds = calibration->operation_seconds;
    device.source = "measured by batchwright calibrate with " + calibration->measured_by;
  } else {
    device.fp32_flops = kCoreFlops * device.multiprocessors;
    device.bandwidth_bytes_per_second = kGuessedBandwidth;
    device.operation_seconds = kGuessedOperationSeconds;
    device.source = "rule of thumb: run batchwright calibrate";
  }
  device.name = fmt::format("{}, {} threads", processor_name(), device.multiprocessors);
  // A rate that was measured is the rate that is reached: the table's share of the data sheet must not apply.
  device.measured_gemm_flops = device.fp32_flops;
  device.bf16_flops = device.fp32_flops;
  device.link_bytes_per_second = device.bandwidth_bytes_per_second / 4;
  return device;
}

}  // namespace

double Calibration::best_flops() const {
  double best = 0;
  for (const ProductTiming& p : products) best = std::max(best, p.flops());
  return best;
}

std::filesystem::path calibration_path() {
  if (const char* path = std::getenv("BATCHWRIGHT_CALIBRATION")) return path;
  std::filesystem::path base;
  if (const char* data = std::getenv("XDG_DATA_HOME"); data != nullptr && *data != '\0') {
    base = data;
  } else if (const char* home = std::getenv("HOME")) {
    base = std::filesystem::path(home) / ".local" / "share";
  } else {
    base = ".";
  }
  return base / "batchwright" / "calibration.json";
}

Json to_json(const Calibration& c) {
  Json products = Json::array();
  for (const ProductTiming& p : c.products) {
    products.push_back(
        {{"rows", p.rows}, {"columns", p.columns}, {"inner", p.inner}, {"seconds", p.seconds}});
  }
  return {{"version", 1},
          {"processor", c.processor},
          {"threads", c.threads},
          {"memory_bytes", c.memory_bytes},
          {"bandwidth_bytes_per_second", c.bandwidth_bytes_per_second},
          {"operation_seconds", c.operation_seconds},
          {"best_product_flops", c.best_flops()},
          {"measured_by", c.measured_by},
          {"products", products}};
}

Calibration calibration_from_json(const Json& document, const std::string& subject) {
  const JsonFields fields(document, subject);
  Calibration c;
  c.processor = fields.text("processor");
  c.threads = static_cast<int>(fields.integer("threads", 1, 1 << 16));
  c.memory_bytes = fields.integer("memory_bytes", 1, 1ll << 60);
  c.bandwidth_bytes_per_second = fields.number("bandwidth_bytes_per_second", 1e6, 1e15);
  c.operation_seconds = fields.number("operation_seconds", 0, 1);
  c.measured_by = fields.text("measured_by");
  const Json* products = fields.find("products");
  if (products == nullptr || !products->is_array() || products->empty()) {
    throw Error(ErrorKind::InvalidInput, subject, "field \"products\" must be a list that is not empty",
                "Run batchwright calibrate again");
  }
  for (const Json& item : *products) {
    const JsonFields product(item, subject);
    c.products.push_back({product.integer("rows", 1, 1 << 24), product.integer("columns", 1, 1 << 24),
                          product.integer("inner", 1, 1 << 24), product.number("seconds", 1e-12, 1e6)});
  }
  return c;
}

std::optional<Calibration> stored_calibration() {
  const std::filesystem::path path = calibration_path();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return calibration_from_json(read_json_file(path, 16 << 20), path.string());
}

void store_calibration(const Calibration& calibration) {
  write_file_atomic(calibration_path(), to_json(calibration).dump(2) + "\n");
}

Device this_machine(bool cpu_only) {
  if (!cpu_only) {
    const std::string name = driver_gpu_name();
    if (!name.empty()) return find_device(name);
  }
  return cpu_device();
}

std::int64_t machine_memory_bytes() {
  const std::string value = value_of_line("/proc/meminfo", "MemTotal");
  const long long kib = std::atoll(value.c_str());
  return std::max<std::int64_t>(kib * 1024, 1 << 20);
}

std::string processor_name() {
  const std::string name = value_of_line("/proc/cpuinfo", "model name");
  return name.empty() ? "CPU" : name;
}

}  // namespace batchwright::hardware
