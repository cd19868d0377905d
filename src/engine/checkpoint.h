#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/loaded_model.h"
#include "engine/loss_scaler.h"
#include "engine/optimizer.h"
#include "model/safetensors.h"
#include "run/options.h"

namespace batchwright::engine {

// A checkpoint is one safetensors file, run_folder/checkpoints/step-000050.safetensors: the trainable weights
// and both moments of AdamW, and in its metadata what the next step depends on beside the job file. The
// sampler and dropout are functions of (seed, step), so the step's number is their whole state.
class Checkpoints {
 public:
  // `arithmetic` names what decides the last bits of a sum: the device, its kernels, the threads, libtorch.
  Checkpoints(std::filesystem::path run_folder, const run::EngineJob& job, std::string content_id,
              std::string arithmetic);

  // Written beside, synced, renamed; then all but the newest options.keep are removed.
  void save(const LoadedModel& model, const AdamW& optimizer, const LossScaler::State& loss_scale,
            std::int64_t steps_done) const;

  struct Resumed {
    std::int64_t steps_done = 0;
    bool same_bits = true;  // false: another thread count or machine wrote it, so the last bits may differ
    std::vector<std::string> damaged = {};  // why each newer one could not be read; they are set aside
  };
  // Loads the newest checkpoint that is whole into the model, the optimizer and the loss scale; nothing when
  // there is none. Throws InvalidInput when it belongs to another request, or when the only one left is
  // damaged.
  std::optional<Resumed> resume(const LoadedModel& model, AdamW& optimizer, LossScaler& scaler) const;

 private:
  std::vector<std::filesystem::path> files() const;  // oldest first
  std::optional<std::pair<std::filesystem::path, model::Safetensors>> open_newest(
      std::vector<std::string>& damaged) const;

  std::filesystem::path folder_;
  std::int64_t keep_;
  std::string request_, arithmetic_;  // request_: a hash of everything that decides the gradients
};

}  // namespace batchwright::engine
