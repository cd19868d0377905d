#include "engine/precision.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace batchwright::engine {
namespace {

template <class Sixteen>
void round_each(const float* x, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(static_cast<Sixteen>(x[i]));
}

}  // namespace

Precision parse_precision(const std::string& name) {
  if (name == "fp32") return {};
  if (name == "bf16") return {.products = Number::BFloat16};
  if (name == "fp16") return {.products = Number::Float16};
  if (name == "pure-bf16") return {.products = Number::BFloat16, .stored = Number::BFloat16};
  throw Error(ErrorKind::Usage, "--precision", fmt::format("'{}' is not known", name),
              "Choose one of fp32, bf16, fp16, pure-bf16");
}

void round_to(Number number, const float* x, std::int64_t count, float* out) {
  switch (number) {
    case Number::Float32:
      if (out != x) std::memcpy(out, x, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case Number::BFloat16:
      return round_each<c10::BFloat16>(x, count, out);
    case Number::Float16:
      return round_each<c10::Half>(x, count, out);
  }
}

}  // namespace batchwright::engine
