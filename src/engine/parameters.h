#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "model/safetensors.h"

namespace batchwright::engine {

// One named tensor of the model, in Hugging Face's name and layout.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0;
  bool trainable = false;
  bool decays = false;  // weight decay applies (not to biases and norms, as the Trainer groups them)
  // A token embedding that nothing else reads: only the rows of a window's tokens have a gradient.
  bool row_per_token = false;
  std::int64_t offset = 0;  // into the trainable or the frozen block
  std::int64_t part = 0;    // of the model: its gradient is final when backward has left this part
};

using ParameterId = std::size_t;

// All weights of a model in two contiguous blocks. Trainable values lie together so that gradient norm,
// clipping and AdamW are one pass each; a gradient block of any thread mirrors them offset by offset.
class Parameters {
 public:
  // Tensors declared one after the other are adjacent in memory: fused projections rely on it.
  ParameterId declare(std::string name, std::vector<std::int64_t> shape, bool trainable, bool decays);
  // What is declared from now on lies in this part; backward goes through the parts from the last to part 0.
  void enter_part(std::int64_t part) { part_ = part; }
  std::int64_t parts() const;  // one more than the last part's number
  void mark_row_per_token(ParameterId id) { all_[id].row_per_token = true; }
  void allocate(DeviceKind device);  // after the last declare; values are not set; throws Error(OutOfMemory)

  const std::vector<Parameter>& all() const { return all_; }
  const Parameter& at(ParameterId id) const { return all_[id]; }
  float* value(ParameterId id) const;
  // The parameter's place in a gradient block of trainable_count() floats; nullptr when it is frozen.
  float* gradient(ParameterId id, float* block) const;

  std::int64_t trainable_count() const { return trainable_count_; }
  std::int64_t frozen_count() const { return frozen_count_; }
  float* trainable_values() const { return trainable_.floats(); }
  const float* frozen_values() const { return frozen_.floats(); }

 private:
  std::vector<Parameter> all_;
  std::int64_t trainable_count_ = 0, frozen_count_ = 0, part_ = 0;
  Buffer trainable_, frozen_;
};

}  // namespace batchwright::engine
