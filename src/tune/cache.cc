#include "tune/cache.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>

#include "base/cores.h"
#include "base/error.h"
#include "base/files.h"
#include "hardware/calibration.h"

namespace batchwright::tune {
namespace {

constexpr int kFormat = 1;

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%d}", utc);
}

// "" when there is no such file, as without the driver.
std::string first_line_of(const std::filesystem::path& file) {
  try {
    const std::string text = read_file(file, 1 << 16);
    return text.substr(0, text.find('\n'));
  } catch (const Error&) {
    return "";
  }
}

std::vector<std::string> gpu_models() {
  std::vector<std::string> models;
  std::error_code error;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", error)) {
    const std::string model = first_line_of(gpu.path() / "information");
    if (!model.empty()) models.push_back(model);
  }
  return models;
}

}  // namespace

std::filesystem::path TuningCache::file() const {
  return folder_ / (content_hash(dump_line(key_)) + ".json");
}

std::optional<TuningCache::Answer> TuningCache::find() const try {
  const std::filesystem::path path = file();
  const Json document = read_json_file(path);
  const JsonFields fields(document, path.string());
  const Json *key = fields.find("key"), *trials = fields.find("trials");
  if (fields.integer("format", 0, 1 << 20, 0) != kFormat || key == nullptr || *key != key_)
    return std::nullopt;
  if (trials == nullptr || !trials->is_array() || trials->empty()) return std::nullopt;
  Answer answer;
  answer.when = fields.text("when", "");
  if (const Json* facts = fields.find("facts")) answer.facts = *facts;
  for (const Json& trial : *trials) answer.trials.push_back(run::trial_from_json(trial, path.string()));
  return answer;
} catch (const Error&) {
  return std::nullopt;
}

void TuningCache::store(const std::vector<run::Trial>& trials, const Json& facts) const try {
  Json list = Json::array();
  for (const run::Trial& trial : trials) list.push_back(run::to_json(trial));
  std::filesystem::create_directories(folder_);
  write_file_atomic(
      file(),
      dump_line({{"format", kFormat}, {"when", today()}, {"key", key_}, {"facts", facts}, {"trials", list}}));
} catch (const std::exception&) {
  return;
}

Json machine_key() {
  return {{"processor", hardware::processor_name()},
          {"threads", usable_cores()},
          {"memory_bytes", hardware::machine_memory_bytes()},
          {"gpus", gpu_models()},
          {"gpu_driver", first_line_of("/proc/driver/nvidia/version")}};
}

}  // namespace batchwright::tune
