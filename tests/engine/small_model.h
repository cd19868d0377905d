#pragma once

#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "data/token_bytes.h"
#include "engine/loaded_model.h"
#include "engine/stepper.h"
#include "model/parameters.h"
#include "model/safetensors.h"
#include "run/options.h"

namespace batchwright::engine::test {

// A model small enough for a test, of one of three families that between them have every block's features
// (norm kinds, grouped heads, rotary positions, normed heads, a window, every dropout), with random weights
// on disk, and random rows of very different lengths.
class SmallModel {
 public:
  explicit SmallModel(const std::string& family = "bert") {
    char pattern[] = "/tmp/batchwright-engine-XXXXXX";
    folder = ::mkdtemp(pattern);
    write_file_atomic(folder / "config.json", config_of(family).dump());
    write_weights();
    write_tokens();
  }
  ~SmallModel() { std::filesystem::remove_all(folder); }
  SmallModel(const SmallModel&) = delete;

  static constexpr int kRows = 24;

  run::TrainingOptions options(run::Method method) const {
    run::TrainingOptions result;
    result.effective_batch = kRows;
    result.method = method;
    result.lora.rank = 4;
    result.lora.dropout = 0.1;
    result.threads = 2;
    result.seed = 3;
    return result;
  }
  std::unique_ptr<LoadedModel> load(const run::TrainingOptions& options) const {
    auto model = load_model(folder, options, data::Task::SequenceClassification, {"bad", "good"});
    // PEFT starts B at zero, where every gradient of A is zero too: tests want gradients that say something.
    for (ParameterId id = 0; id < model->parameters.all().size(); ++id) {
      if (!model->parameters.at(id).name.ends_with("lora_B.weight")) continue;
      RandomStream random(5, RandomUse::Test, id);
      std::vector<float> values(static_cast<std::size_t>(model->parameters.at(id).count));
      for (float& x : values) x = static_cast<float>(0.1 * random.normal());
      model->set_values(id, values);
    }
    return model;
  }
  data::TokenFile tokens() const { return data::TokenFile::open(folder / "rows.tokens"); }
  std::vector<std::uint32_t> rows() const {
    std::vector<std::uint32_t> all(kRows);
    for (std::uint32_t i = 0; i < kRows; ++i) all[i] = i;
    return all;
  }

  std::filesystem::path folder;

 private:
  static Json config_of(const std::string& family) {
    if (family == "gpt2") {
      return {{"model_type", "gpt2"}, {"n_embd", 40},      {"n_layer", 3},
              {"n_head", 5},          {"vocab_size", 60},  {"n_positions", 64},
              {"embd_pdrop", 0.1},    {"attn_pdrop", 0.2}, {"resid_pdrop", 0.1}};
    }
    if (family == "qwen3") {
      return {{"model_type", "qwen3"},      {"hidden_size", 40},        {"num_hidden_layers", 3},
              {"num_attention_heads", 4},   {"num_key_value_heads", 2}, {"head_dim", 12},
              {"intermediate_size", 72},    {"vocab_size", 60},         {"max_position_embeddings", 64},
              {"hidden_act", "silu"},       {"attention_dropout", 0.2}, {"attention_bias", true},
              {"use_sliding_window", true}, {"sliding_window", 9},      {"max_window_layers", 1}};
    }
    return {
        {"model_type", "bert"},          {"hidden_size", 40},          {"num_hidden_layers", 3},
        {"num_attention_heads", 5},      {"intermediate_size", 72},    {"vocab_size", 60},
        {"max_position_embeddings", 64}, {"type_vocab_size", 2},       {"layer_norm_eps", 1e-12},
        {"hidden_act", "gelu"},          {"hidden_dropout_prob", 0.1}, {"attention_probs_dropout_prob", 0.2},
        {"initializer_range", 0.02}};
  }
  void write_weights() {
    const auto config = model::read_model_config(folder);
    std::vector<std::vector<float>> values;
    std::vector<model::TensorToWrite> tensors;
    const auto shapes = model::list_tensors(config, model::Head::SequenceClassification);
    values.reserve(shapes.size());
    for (const auto& tensor : shapes) {
      RandomStream random(1, RandomUse::Test, values.size());
      values.emplace_back(static_cast<std::size_t>(tensor.elements()));
      const bool norm_weight = tensor.shape.size() == 1 && tensor.name.ends_with(".weight");
      for (float& x : values.back()) x = static_cast<float>((norm_weight ? 1 : 0) + 0.15 * random.normal());
      tensors.push_back({tensor.name, tensor.shape, values.back()});
    }
    model::write_safetensors(folder / "model.safetensors", tensors);
  }
  void write_tokens() {
    data::test::TokenRows rows;
    rows.ids.clear();
    rows.labels.clear();
    RandomStream random(2, RandomUse::Test);
    for (int row = 0; row < kRows; ++row) {
      std::vector<std::int32_t> ids(2 + random.below(row % 8 == 0 ? 60 : 20));
      for (auto& id : ids) id = static_cast<std::int32_t>(random.below(60));
      rows.ids.push_back(ids);
      rows.labels.push_back(static_cast<std::int32_t>(random.below(2)));
    }
    write_file_atomic(folder / "rows.tokens", rows.bytes());
  }
};

// The gradient of one window, copied.
inline std::vector<float> gradient_of(Stepper& stepper, const std::vector<std::uint32_t>& rows,
                                      const Cut& cut, double* loss = nullptr) {
  const StepOutcome outcome = stepper.accumulate(rows, cut, 7);
  if (loss != nullptr) *loss = outcome.loss;
  return stepper.sum_gradients();
}

// The project's measure (ARCHITECTURE.md): the worst tensor's |difference| / max(|its gradient|, 1e-3 |whole
// gradient|).
inline double worst_difference(const Parameters& parameters, const std::vector<float>& a,
                               const std::vector<float>& b, std::string* worst = nullptr) {
  double whole = 0;
  for (const float x : b) whole += static_cast<double>(x) * x;
  double most = 0;
  for (const Parameter& p : parameters.all()) {
    if (!p.trainable) continue;
    double difference = 0, own = 0;
    for (std::int64_t i = p.offset; i < p.offset + p.count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      difference += std::pow(static_cast<double>(a[at]) - b[at], 2);
      own += static_cast<double>(b[at]) * b[at];
    }
    const double relative = std::sqrt(difference) / std::max(std::sqrt(own), 1e-3 * std::sqrt(whole));
    if (relative > most || std::isnan(relative)) {
      most = relative;
      if (worst != nullptr) *worst = p.name;
    }
  }
  return most;
}

}  // namespace batchwright::engine::test
