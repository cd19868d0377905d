#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"

namespace batchwright::model {

enum class DType { F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool };

std::int64_t dtype_bytes(DType dtype);
std::string dtype_name(DType dtype);  // "F32", as the format spells it

// One tensor of a mapped file; `bytes` lives as long as the file object.
struct StoredTensor {
  DType dtype = DType::F32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::int64_t elements() const;
};

// The tensors of a model: one safetensors file, or all shards of a model.safetensors.index.json.
// Format: u64 length of a JSON header, the header, then one byte buffer that the tensors fill without gaps
// (https://github.com/huggingface/safetensors). Every length, offset, dtype and shape is checked before use.
class Safetensors {
 public:
  // Throws NotFound or InvalidInput naming the file and the tensor.
  static Safetensors open_file(const std::filesystem::path& path);
  // model.safetensors, or the shards of model.safetensors.index.json, in a folder.
  static Safetensors open_model(const std::filesystem::path& folder);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(const std::string& name) const;
  // The strings of __metadata__.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  void add_file(const std::filesystem::path& path);

  std::filesystem::path path_;
  std::vector<MappedFile> files_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// Converts a floating tensor to float32 into out[elements]. Throws Unsupported for integer types.
void copy_as_float(const StoredTensor& tensor, const std::string& name, std::span<float> out);

// A float32 tensor to be written.
struct TensorToWrite {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

// Writes tensors atomically (temporary file, sync, rename), with {"format": "pt"}, as Transformers expects,
// and `metadata`.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace batchwright::model
