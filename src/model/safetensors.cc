#include "model/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace batchwright::model {
namespace {

constexpr std::int64_t kMaxHeaderBytes = 100'000'000;  // the reference implementation's own limit

struct NamedType {
  DType dtype;
  const char* name;
  std::int64_t bytes;
};
constexpr std::array<NamedType, 10> kTypes = {{{DType::F64, "F64", 8},
                                               {DType::F32, "F32", 4},
                                               {DType::F16, "F16", 2},
                                               {DType::BF16, "BF16", 2},
                                               {DType::I64, "I64", 8},
                                               {DType::I32, "I32", 4},
                                               {DType::I16, "I16", 2},
                                               {DType::I8, "I8", 1},
                                               {DType::U8, "U8", 1},
                                               {DType::Bool, "BOOL", 1}}};

[[noreturn]] void broken(const std::filesystem::path& path, const std::string& message) {
  throw Error(ErrorKind::InvalidInput, path.string(), message,
              "The file may be cut short: copy or download it again");
}

const NamedType& type_named(const std::string& name, const std::filesystem::path& path,
                            const std::string& tensor) {
  for (const NamedType& type : kTypes) {
    if (name == type.name) return type;
  }
  throw Error(ErrorKind::Unsupported, path.string(), fmt::format("tensor {} has the type {}", tensor, name),
              "Floating types F64, F32, F16 and BF16 are read");
}

StoredTensor read_entry(const std::string& name, const Json& entry, std::span<const std::byte> data,
                        const std::filesystem::path& path) {
  const std::string subject = fmt::format("{}: tensor {}", path.string(), name);
  const JsonFields fields(entry, subject);
  const NamedType& type = type_named(fields.text("dtype"), path, name);
  const Json* shape = fields.find("shape");
  const Json* offsets = fields.find("data_offsets");
  if (shape == nullptr || !shape->is_array() || offsets == nullptr || !offsets->is_array() ||
      offsets->size() != 2) {
    broken(path, fmt::format("tensor {} lacks a shape or data_offsets", name));
  }
  StoredTensor tensor{.dtype = type.dtype, .shape = {}, .bytes = {}};
  std::int64_t bytes = type.bytes;
  for (const Json& size : *shape) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > (1ull << 40)) {
      broken(path, fmt::format("tensor {} has an impossible shape", name));
    }
    tensor.shape.push_back(size.get<std::int64_t>());
    if (__builtin_mul_overflow(bytes, tensor.shape.back(), &bytes)) {
      broken(path, fmt::format("tensor {} has an impossible shape", name));
    }
  }
  if (!(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned()) {
    broken(path, fmt::format("tensor {} has impossible offsets", name));
  }
  const auto begin = (*offsets)[0].get<std::uint64_t>(), end = (*offsets)[1].get<std::uint64_t>();
  if (begin > end || end > data.size() || end - begin != static_cast<std::uint64_t>(bytes)) {
    broken(path, fmt::format("tensor {} claims bytes {} to {} for {} bytes of values; the file has {}", name,
                             begin, end, bytes, data.size()));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

struct Extent {
  std::size_t begin, end;
  const std::string* tensor;
};

// The format's own rule: tensors fill the buffer without overlaps and without holes.
void check_filled(std::vector<Extent>& extents, std::size_t size, const std::filesystem::path& path) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::size_t filled = 0;
  for (const Extent& extent : extents) {
    if (extent.begin != filled) {
      broken(path, fmt::format("tensor {} starts at byte {}, and the one before it ends at {}",
                               *extent.tensor, extent.begin, filled));
    }
    filled = extent.end;
  }
  if (filled != size)
    broken(path, fmt::format("has {} bytes of values, and its tensors fill {}", size, filled));
}

}  // namespace

std::int64_t dtype_bytes(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].bytes; }
std::string dtype_name(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)].name; }

std::int64_t StoredTensor::elements() const {
  return static_cast<std::int64_t>(bytes.size()) / dtype_bytes(dtype);
}

const StoredTensor* Safetensors::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

void Safetensors::add_file(const std::filesystem::path& path) {
  MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  std::uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes)
    broken(path, fmt::format("has {} bytes: no safetensors file", bytes.size()));
  static_assert(std::endian::native == std::endian::little, "the format is little endian");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  if (header_bytes > kMaxHeaderBytes || header_bytes > bytes.size() - sizeof header_bytes) {
    broken(path, fmt::format("claims a header of {} bytes; the file has {}", header_bytes, bytes.size()));
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + sizeof header_bytes,
                              header_bytes);
  const Json header = parse_json(text, path.string());
  if (!header.is_object()) broken(path, "has a header that is not a JSON object");
  const auto data = bytes.subspan(sizeof header_bytes + header_bytes);
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (value.is_string()) metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    const auto [added, is_new] = tensors_.emplace(name, read_entry(name, entry, data, path));
    if (!is_new) broken(path, fmt::format("holds tensor {} twice", name));
    const auto begin = static_cast<std::size_t>(added->second.bytes.data() - data.data());
    extents.push_back({begin, begin + added->second.bytes.size(), &added->first});
  }
  check_filled(extents, data.size(), path);
  files_.push_back(std::move(file));
}

Safetensors Safetensors::open_file(const std::filesystem::path& path) {
  Safetensors result;
  result.path_ = path;
  result.add_file(path);
  return result;
}

Safetensors Safetensors::open_model(const std::filesystem::path& folder) {
  const auto single = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  if (std::filesystem::exists(single)) return open_file(single);
  if (!std::filesystem::exists(index)) {
    throw Error(ErrorKind::NotFound, folder.string(), "holds neither model.safetensors nor its index",
                "Save the model with save_pretrained(folder), which writes model.safetensors");
  }
  const Json document = read_json_file(index);
  const JsonFields fields(document, index.string());
  const Json* map = fields.find("weight_map");
  if (map == nullptr || !map->is_object()) broken(index, "has no weight_map");
  Safetensors result;
  result.path_ = index;
  std::vector<std::string> shards;
  for (const auto& [tensor, shard] : map->items()) {
    const std::string name = shard.is_string() ? shard.get<std::string>() : "";
    // A shard is a plain file name: a path could reach outside the model's folder.
    if (name.empty() || std::filesystem::path(name).filename() != name) {
      broken(index, fmt::format("names an impossible shard for tensor {}", tensor));
    }
    if (std::find(shards.begin(), shards.end(), name) == shards.end()) shards.push_back(name);
  }
  for (const std::string& shard : shards) result.add_file(folder / shard);
  for (const auto& [tensor, shard] : map->items()) {
    if (result.find(tensor) == nullptr)
      broken(index, fmt::format("names tensor {}, which no shard holds", tensor));
  }
  return result;
}

namespace {

float from_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
  if (exponent == 0)
    return std::bit_cast<float>(sign | 0x3f800000u) * (static_cast<float>(mantissa) * 0x1p-24f);
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
}

template <class Stored, class Convert>
void convert_all(const StoredTensor& tensor, std::span<float> out, const Convert& convert) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    Stored value;  // the file promises no alignment
    std::memcpy(&value, tensor.bytes.data() + i * sizeof value, sizeof value);
    out[i] = convert(value);
  }
}

}  // namespace

void copy_as_float(const StoredTensor& tensor, const std::string& name, std::span<float> out) {
  if (static_cast<std::int64_t>(out.size()) != tensor.elements()) {
    throw Error(ErrorKind::Internal, name, "has another number of elements than its destination");
  }
  switch (tensor.dtype) {
    case DType::F32:
      std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return;
    case DType::F64:
      return convert_all<double>(tensor, out, [](double x) { return static_cast<float>(x); });
    case DType::F16:
      return convert_all<std::uint16_t>(tensor, out, from_half);
    case DType::BF16:
      return convert_all<std::uint16_t>(tensor, out, [](std::uint16_t x) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16);
      });
    default:
      throw Error(ErrorKind::Unsupported, name, "is stored as " + dtype_name(tensor.dtype),
                  "Weights are read from F64, F32, F16 and BF16");
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata) {
  Json header = {{"__metadata__", {{"format", "pt"}}}};
  for (const auto& [name, value] : metadata) header["__metadata__"][name] = value;
  std::uint64_t offset = 0;
  for (const TensorToWrite& tensor : tensors) {
    const std::uint64_t bytes = tensor.values.size_bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = dump_line(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data starts at a multiple of 8, as the format asks
  const std::uint64_t header_bytes = text.size();
  std::vector<std::string_view> pieces = {{reinterpret_cast<const char*>(&header_bytes), sizeof header_bytes},
                                          text};
  for (const TensorToWrite& tensor : tensors) {
    pieces.emplace_back(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  write_file_atomic(path, pieces);
}

}  // namespace batchwright::model
