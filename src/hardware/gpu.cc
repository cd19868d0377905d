#include "hardware/gpu.h"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <unordered_map>

#include "base/error.h"

namespace batchwright::hardware {

std::string_view data_gpus_csv();  // made at build time from gpus.csv

namespace {

constexpr double kGiB = 1073741824.0;
// The driver keeps some memory: 79.2 of 80 GiB on an A100, 79.1 on an H100, 14.75 of 15 on a T4
// (out-of-memory messages, see the table's sources). Used where the table has no measured figure.
constexpr double kUsableFraction = 0.988;

// Quoted cells may hold commas; there are no quotes inside cells.
std::vector<std::string> split_csv_line(std::string_view line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  }
  return parts;
}

double number(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string folded(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  // As drivers print them: "NVIDIA GeForce RTX 4090", "Tesla V100-SXM2-16GB".
  for (const std::string_view brand : {"nvidia", "amd", "instinct", "geforce", "tesla", "quadro"}) {
    if (result.starts_with(brand)) result.erase(0, brand.size());
  }
  return result;
}

struct DeviceTable {
  std::vector<Device> devices;
  std::unordered_map<std::string, std::size_t> by_name;
};

Device device_from_cells(const std::vector<std::string>& cells) {
  Device device;
  device.name = cells[0];
  device.architecture = cells[2];
  device.memory_bytes = static_cast<std::int64_t>(number(cells[3]) * kGiB);
  device.usable_bytes =
      cells[4].empty() ? static_cast<std::int64_t>(static_cast<double>(device.memory_bytes) * kUsableFraction)
                       : static_cast<std::int64_t>(number(cells[4]) * kGiB);
  device.bandwidth_bytes_per_second = number(cells[5]) * 1e9;
  device.fp32_flops = number(cells[6]) * 1e12;
  device.tf32_flops = number(cells[7]) * 1e12;
  device.fp16_flops = number(cells[8]) * 1e12;
  device.bf16_flops = number(cells[9]) * 1e12;
  if (!cells[10].empty()) device.measured_gemm_flops = number(cells[10]) * 1e12;
  device.link_bytes_per_second = number(cells[11]) * 1e9;
  device.multiprocessors = static_cast<int>(number(cells[12]));
  device.source = cells[13];
  return device;
}

DeviceTable read_table() {
  DeviceTable table;
  for (const std::string& line : split(data_gpus_csv(), '\n')) {
    const std::vector<std::string> cells = split_csv_line(line);
    if (cells.size() != 14 || cells[0] == "name") continue;
    table.devices.push_back(device_from_cells(cells));
    const std::size_t index = table.devices.size() - 1;
    table.by_name.emplace(folded(cells[0]), index);
    for (const std::string& alias : split(cells[1], ';')) table.by_name.emplace(folded(alias), index);
  }
  return table;
}

const DeviceTable& device_table() {
  static const DeviceTable table = read_table();
  return table;
}

}  // namespace

std::string_view arithmetic_name(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::Fp32:
      return "fp32";
    case Arithmetic::Tf32:
      return "tf32";
    case Arithmetic::Fp16:
      return "fp16";
    case Arithmetic::Bf16:
      return "bf16";
  }
  return "fp32";
}

double Device::flops(Arithmetic arithmetic) const {
  switch (arithmetic) {
    case Arithmetic::Fp32:
      return fp32_flops;
    case Arithmetic::Tf32:
      return tf32_flops;
    case Arithmetic::Fp16:
      return fp16_flops;
    case Arithmetic::Bf16:
      return bf16_flops;
  }
  return 0;
}

const std::vector<Device>& known_devices() { return device_table().devices; }

const Device& find_device(std::string_view name) {
  const DeviceTable& table = device_table();
  const auto found = table.by_name.find(folded(name));
  if (found != table.by_name.end()) return table.devices[found->second];
  std::vector<std::string_view> names;
  for (const Device& device : table.devices) names.push_back(device.name);
  const std::string near = nearest_choice(name, names);
  throw Error(
      ErrorKind::Usage, "gpu", fmt::format("\"{}\" is not in the table", name.substr(0, 60)),
      fmt::format(
          "{}Describe it in a JSON file with memory_gib, bandwidth_gb_per_s and bf16_tflops. Known are {}",
          near.empty() ? "" : fmt::format("Did you mean \"{}\"? ", near), fmt::join(names, ", ")));
}

Device device_from_json(const Json& document, const std::string& subject) {
  const JsonFields fields(document, subject);
  fields.reject_unknown({"name", "architecture", "memory_gib", "usable_gib", "bandwidth_gb_per_s",
                         "fp32_tflops", "tf32_tflops", "fp16_tflops", "bf16_tflops", "measured_gemm_tflops",
                         "link_gb_per_s", "multiprocessors", "source"});
  Device device;
  device.name = fields.text("name", "described device");
  device.architecture = fields.text("architecture", "described");
  const double memory = fields.number("memory_gib", 0.001, 1e6);
  device.memory_bytes = static_cast<std::int64_t>(memory * kGiB);
  device.usable_bytes =
      static_cast<std::int64_t>(fields.number("usable_gib", 0.001, memory, memory * kUsableFraction) * kGiB);
  device.bandwidth_bytes_per_second = fields.number("bandwidth_gb_per_s", 0.1, 1e6) * 1e9;
  device.bf16_flops = fields.number("bf16_tflops", 0, 1e6, 0) * 1e12;
  device.fp16_flops = fields.number("fp16_tflops", 0, 1e6, device.bf16_flops / 1e12) * 1e12;
  device.tf32_flops = fields.number("tf32_tflops", 0, 1e6, device.bf16_flops / 2e12) * 1e12;
  device.fp32_flops =
      fields.number("fp32_tflops", 1e-6, 1e6, std::max(device.bf16_flops / 16e12, 1e-6)) * 1e12;
  if (fields.has("measured_gemm_tflops"))
    device.measured_gemm_flops = fields.number("measured_gemm_tflops", 1e-6, 1e6) * 1e12;
  device.link_bytes_per_second = fields.number("link_gb_per_s", 0.01, 1e5, 26) * 1e9;
  device.multiprocessors = static_cast<int>(fields.integer("multiprocessors", 1, 100000, 80));
  device.source = fields.text("source", subject);
  return device;
}

}  // namespace batchwright::hardware
