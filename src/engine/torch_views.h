#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "engine/memory.h"

// The engine's memory as ATen tensors, for TorchOps.
namespace batchwright::engine {

inline at::Device device_of(DeviceKind kind) { return kind == DeviceKind::Cuda ? at::kCUDA : at::kCPU; }
inline at::TensorOptions float_on(DeviceKind kind) {
  return at::TensorOptions(at::kFloat).device(device_of(kind));
}

// A view of our memory; reads and writes go straight through.
inline at::Tensor view(DeviceKind kind, const float* data, at::IntArrayRef shape) {
  return at::from_blob(const_cast<float*>(data), shape, float_on(kind));
}
inline at::Tensor strided(DeviceKind kind, const float* data, std::int64_t rows, std::int64_t cols,
                          std::int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, cols}, {stride, 1}, float_on(kind));
}

// [rows, heads, head_dim] of rows `stride` apart.
inline at::Tensor heads_of(DeviceKind kind, const float* data, std::int64_t rows, std::int64_t heads,
                           std::int64_t head_dim, std::int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, heads, head_dim}, {stride, head_dim, 1},
                       float_on(kind));
}

template <class Values>
at::Tensor indices(DeviceKind kind, const Values& values) {
  at::Tensor result = at::empty({static_cast<std::int64_t>(values.size())}, at::kLong);
  auto* out = result.data_ptr<std::int64_t>();
  for (const auto value : values) *out++ = static_cast<std::int64_t>(value);
  return result.to(device_of(kind));
}

// Bits [rows][ceil(cols / 32)] as a float mask [rows, cols].
inline at::Tensor mask_of(const at::Tensor& words, std::int64_t rows, std::int64_t cols) {
  const at::Tensor shifts = at::arange(32, words.options().dtype(at::kInt));
  const at::Tensor bits = words.view({rows, -1, 1}).__rshift__(shifts).__and__(1);
  return bits.view({rows, -1}).narrow(1, 0, cols).to(at::kFloat);
}
inline at::Tensor mask_of(DeviceKind kind, const std::uint32_t* bits, std::int64_t rows, std::int64_t cols) {
  const at::Tensor words = at::from_blob(const_cast<std::uint32_t*>(bits), {rows * ((cols + 31) / 32)},
                                         at::TensorOptions(at::kInt).device(device_of(kind)));
  return mask_of(words, rows, cols);
}

}  // namespace batchwright::engine
