#include "engine/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "model/safetensors.h"

namespace batchwright::engine {
namespace {

std::string request_hash(const run::EngineJob& job, const std::string& content_id) {
  return content_hash(dump_line({{"options", deciding_options(job.options)}, {"data", content_id}}));
}

std::int64_t number_in(const std::map<std::string, std::string>& metadata, const std::string& name,
                       const std::filesystem::path& path) {
  const auto found = metadata.find(name);
  std::int64_t value = -1;
  if (found != metadata.end()) {
    std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  }
  if (value < 0) throw Error(ErrorKind::InvalidInput, path.string(), "is not a checkpoint: it lacks " + name);
  return value;
}

}  // namespace

Checkpoints::Checkpoints(std::filesystem::path run_folder, const run::EngineJob& job, std::string content_id,
                         std::string arithmetic)
    : folder_(std::move(run_folder) / "checkpoints"),
      keep_(job.options.keep),
      request_(request_hash(job, content_id)),
      arithmetic_(std::move(arithmetic)) {}

std::vector<std::filesystem::path> Checkpoints::files() const {
  std::vector<std::filesystem::path> result;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.ends_with(".safetensors")) result.push_back(entry.path());
  }
  // Numbers are padded to one width, so the names' order is that of the steps.
  std::sort(result.begin(), result.end());
  return result;
}

void Checkpoints::save(const LoadedModel& model, const AdamW& optimizer, const LossScaler::State& loss_scale,
                       std::int64_t steps_done) const {
  const std::int64_t count = model.parameters.trainable_count();
  std::vector<std::vector<float>> values;
  std::vector<model::TensorToWrite> tensors;
  const std::pair<const char*, const float*> blocks[] = {{"values", model.parameters.trainable_values()},
                                                         {"moment1", optimizer.moment1()},
                                                         {"moment2", optimizer.moment2()}};
  values.reserve(std::size(blocks));
  for (const auto& [name, data] : blocks) {
    std::span<const float> view(data, static_cast<std::size_t>(count));
    if (model.ops->device() != DeviceKind::Cpu) {
      values.emplace_back(static_cast<std::size_t>(count));
      model.ops->download(data, count, values.back().data());
      view = values.back();
    }
    tensors.push_back({name, {count}, view});
  }
  model::write_safetensors(folder_ / fmt::format("step-{:09}.safetensors", steps_done), tensors,
                           {{"steps_done", std::to_string(steps_done)},
                            {"updates_done", std::to_string(optimizer.steps_done())},
                            {"loss_scale", fmt::format("{}", loss_scale.scale)},
                            {"loss_scale_good_steps", std::to_string(loss_scale.good_steps)},
                            {"request", request_},
                            {"arithmetic", arithmetic_}});
  const auto all = files();
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep_) < all.size(); ++i)
    std::filesystem::remove(all[i]);
  remove_torn_files(folder_);
}

std::optional<std::pair<std::filesystem::path, model::Safetensors>> Checkpoints::open_newest(
    std::vector<std::string>& damaged) const {
  auto all = files();
  for (; !all.empty(); all.pop_back()) {
    const std::filesystem::path& path = all.back();
    try {
      return std::pair(path, model::Safetensors::open_file(path));
    } catch (const Error& e) {
      if (all.size() == 1) {
        throw Error(e.kind(), e.subject(), e.message(),
                    "No older checkpoint is left: give --overwrite to train from the start");
      }
      damaged.emplace_back(e.what());
    }
    // Under its old name it would count as the newest again, and the next save would remove a sound one for
    // it.
    std::filesystem::rename(path, path.string() + ".damaged");
  }
  return std::nullopt;
}

std::optional<Checkpoints::Resumed> Checkpoints::resume(const LoadedModel& model, AdamW& optimizer,
                                                        LossScaler& scaler) const {
  std::vector<std::string> damaged;
  const auto newest = open_newest(damaged);
  if (!newest) return std::nullopt;
  const auto& [path, file] = *newest;
  const auto& metadata = file.metadata();
  const auto request = metadata.find("request");
  if (request == metadata.end() || request->second != request_) {
    throw Error(ErrorKind::InvalidInput, path.string(), "belongs to another training request",
                "Name another folder with --run, or give --overwrite to replace it");
  }
  const std::int64_t count = model.parameters.trainable_count();
  const std::pair<const char*, float*> blocks[] = {{"values", model.parameters.trainable_values()},
                                                   {"moment1", optimizer.moment1()},
                                                   {"moment2", optimizer.moment2()}};
  for (const auto& [name, data] : blocks) {
    const model::StoredTensor* stored = file.find(name);
    if (stored == nullptr || stored->elements() != count) {
      throw Error(ErrorKind::InvalidInput, path.string(), fmt::format("holds no {} of this model", name));
    }
    std::vector<float> host(static_cast<std::size_t>(count));
    model::copy_as_float(*stored, name, host);
    model.ops->upload(host.data(), count, data);
  }
  Resumed resumed{.steps_done = number_in(metadata, "steps_done", path), .damaged = std::move(damaged)};
  const auto arithmetic = metadata.find("arithmetic");
  resumed.same_bits = arithmetic != metadata.end() && arithmetic->second == arithmetic_;
  optimizer.set_steps_done(number_in(metadata, "updates_done", path));
  // A power of two times what a person gave: its shortest text reads back as the same number.
  const auto scale = metadata.find("loss_scale");
  if (scaler.scales() && scale != metadata.end()) {
    scaler.set_state(
        {std::strtod(scale->second.c_str(), nullptr), number_in(metadata, "loss_scale_good_steps", path)});
  }
  return resumed;
}

}  // namespace batchwright::engine
