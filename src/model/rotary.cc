#include "model/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace batchwright::model {
namespace {

constexpr std::int64_t kMostPositions = 1ll << 32;
constexpr const char* kField = "rope_scaling";

double theta_of(const ModelConfig& config) { return config.rope_theta.value_or(10000); }

std::vector<float> default_frequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  const auto theta = static_cast<float>(theta_of(config)), dim = static_cast<float>(config.head_dim);
  for (std::int64_t i = 0; i < config.head_dim; i += 2) {
    frequencies.push_back(1.0f / std::pow(theta, static_cast<float>(i) / dim));
  }
  return frequencies;
}

// Llama 3.1: long wavelengths are stretched, short ones kept, those between blended.
void scale_as_llama3(const JsonFields& fields, std::vector<float>& frequencies) {
  const double factor = fields.number("factor", 1, 1e6), low = fields.number("low_freq_factor", 1e-6, 1e6),
               high = fields.number("high_freq_factor", 1e-6, 1e6);
  const auto context =
      static_cast<double>(fields.integer("original_max_position_embeddings", 1, kMostPositions));
  if (high <= low) {
    throw Error(ErrorKind::InvalidInput, kField, "high_freq_factor must be larger than low_freq_factor");
  }
  for (float& f : frequencies) {
    const double wavelength = 2 * M_PI / f;
    if (wavelength > context / low) {
      f = static_cast<float>(f / factor);
    } else if (wavelength >= context / high) {
      const double smooth = (context / wavelength - low) / (high - low);
      f = static_cast<float>((1 - smooth) * f / factor + smooth * f);
    }
  }
}

double yarn_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

// Peng et al. 2023: frequencies that turn often are kept, slow ones interpolated, a linear ramp between.
void scale_as_yarn(const ModelConfig& config, const JsonFields& fields, Rotary& rotary) {
  const double factor = fields.number("factor", 1e-6, 1e6), fast = fields.number("beta_fast", 0, 1e6, 32),
               slow = fields.number("beta_slow", 0, 1e6, 1);
  const auto context = static_cast<double>(
      fields.integer("original_max_position_embeddings", 1, kMostPositions, config.max_positions));
  const double dim = static_cast<double>(config.head_dim), theta = theta_of(config);
  const auto turns_so_often = [&](double rotations) {
    return dim * std::log(context / (rotations * 2 * M_PI)) / (2 * std::log(theta));
  };
  double begin = turns_so_often(fast), end = turns_so_often(slow);
  if (fields.boolean("truncate", true)) begin = std::floor(begin), end = std::ceil(end);
  begin = std::max(begin, 0.0), end = std::min(end, dim - 1);
  if (begin == end) end += 0.001;
  for (std::size_t i = 0; i < rotary.frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - begin) / (end - begin), 0.0, 1.0);
    const double kept = rotary.frequencies[i];
    rotary.frequencies[i] = static_cast<float>(kept / factor * ramp + kept * (1 - ramp));
  }
  const double mscale = fields.number("mscale", 0, 1e6, 0), all = fields.number("mscale_all_dim", 0, 1e6, 0);
  const double inferred =
      mscale > 0 && all > 0 ? yarn_scale(factor, mscale) / yarn_scale(factor, all) : yarn_scale(factor, 1);
  rotary.scale = fields.number("attention_factor", 0, 1e6, inferred);
}

}  // namespace

Rotary rotary_of(const ModelConfig& config) {
  if (config.head_dim % 2 != 0) {
    throw Error(ErrorKind::InvalidInput, "config.json",
                fmt::format("rotary positions need an even head size, not {}", config.head_dim));
  }
  Rotary rotary{.frequencies = default_frequencies(config)};
  if (!config.rope_scaling.has_value()) return rotary;
  const JsonFields fields(*config.rope_scaling, kField);
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (type == "default" || type == "dynamic") return rotary;
  if (type == "linear") {
    const double factor = fields.number("factor", 1e-6, 1e6);
    for (float& f : rotary.frequencies) f = static_cast<float>(f / factor);
  } else if (type == "llama3") {
    scale_as_llama3(fields, rotary.frequencies);
  } else if (type == "yarn") {
    scale_as_yarn(config, fields, rotary);
  } else {
    throw Error(ErrorKind::Unsupported, kField, fmt::format("rope_type \"{}\" is not known", type),
                "There are default, linear, dynamic, llama3 and yarn");
  }
  return rotary;
}

std::int64_t attention_window(const ModelConfig& config, std::int64_t layer) {
  const JsonFields fields(config.raw, "config.json");
  switch (config.architecture) {
    case Architecture::Mistral:
      // Its configuration class slides over 4096 when the file says nothing; null switches it off.
      return config.raw.contains("sliding_window") ? config.sliding_window.value_or(0) : 4096;
    case Architecture::Qwen2:
    case Architecture::Qwen3: {
      if (!fields.boolean("use_sliding_window", false)) return 0;
      const std::int64_t window = fields.integer("sliding_window", 1, kMostPositions, 4096);
      if (const Json* types = fields.find("layer_types"); types != nullptr && types->is_array()) {
        const auto at = static_cast<std::size_t>(layer);
        return at < types->size() && (*types)[at] == "sliding_attention" ? window : 0;
      }
      return layer >= fields.integer("max_window_layers", 0, kMostPositions, 28) ? window : 0;
    }
    default:
      return 0;
  }
}

}  // namespace batchwright::model
