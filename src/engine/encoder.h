#pragma once

#include <optional>
#include <vector>

#include "engine/block.h"
#include "engine/body.h"
#include "model/config.h"

namespace batchwright::engine {

// In what the families of BERT differ; names come from the model's module list.
struct EncoderDescription {
  Activation activation = Activation::Gelu;
  double norm_epsilon = 1e-12;
  std::int64_t position_offset = 0;  // the position embedding of a sequence's first token
  double hidden_dropout = 0, attention_dropout = 0;
  bool attention_output_dropout = true;  // DistilBERT has none there
};

// BERT (Devlin et al. 2018) and its relatives without pooler and head: learned positions, and layers that
// norm the sum of a branch and its residual.
class Encoder final : public Body {
 public:
  Encoder(const model::ModelConfig& config, const EncoderDescription& description,
          const run::TrainingOptions& options, Parameters& parameters);

  void add_adapters(Parameters& parameters, const std::vector<std::string>& wrapped_modules,
                    const run::LoraOptions& options) override;
  std::unique_ptr<Activations> forward(const Pass& pass, const Shard& shard, bool keep) const override;
  void backward(const Pass& pass, const Shard& shard, Activations& activations,
                const float* d_hidden) const override;
  std::int64_t hidden() const override { return config_.hidden; }
  ParameterId word_embeddings() const override { return word_; }

 private:
  struct Layer {
    Linear qkv, attention_output, intermediate, mlp_output;
    Norm attention_norm, mlp_norm;
  };
  // Kept from forward for backward, per layer; [rows, ...] in the arena.
  struct LayerSaved {
    float *qkv = nullptr, *intermediate = nullptr;
    AttentionSaved attention;
    NormSaved attention_norm, mlp_norm;
    LinearSaved qkv_saved, attention_output_saved, intermediate_saved, mlp_output_saved;
  };
  // Workspace that every layer's forward reuses, and backward after it.
  struct Scratch {
    float* outputs[2] = {nullptr, nullptr};  // [rows, hidden], of odd and even layers
    float *wide = nullptr, *attention = nullptr, *residual = nullptr;
    float* intermediate = nullptr;  // selective checkpointing only
  };
  struct Saved final : Activations {
    Scratch scratch;
    NormSaved embedding_norm;
    float* embedded = nullptr;  // [rows, hidden], the first layer's input
    std::vector<LayerSaved> layers;
    std::vector<const float*> inputs;  // of every layer; still there in backward under full checkpointing
  };

  bool is_last(const Layer& layer) const { return &layer == &layers_.back(); }
  const TokenBatch& output_rows(const Shard& shard, const Layer& layer) const;
  // The last layer's attention runs for all rows and its output is taken at the wanted ones.
  bool takes_rows(const Shard& shard, const Layer& layer) const {
    return is_last(layer) && shard.wants != WantedRows::All;
  }
  Attention attention_shape(const Pass& pass, std::int64_t layer) const;
  Attention attention(const Pass& pass, const Shard& shard, const Layer& layer, const float* qkv) const;
  std::int64_t position_start() const { return description_.position_offset * config_.hidden; }

  void embed(const Pass& pass, const TokenBatch& batch, Saved& saved) const;
  void layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                     const Scratch& scratch, float* y, LayerSaved& saved) const;

  // dx, the gradient of the layer's input, may be dy's memory, and nullptr when nothing needs it.
  void layer_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                      const Scratch& forward_scratch, const float* x, const LayerSaved& saved,
                      const float* dy, float* dx) const;
  void mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                    const LayerSaved& saved, const float* d_dense, float* dx) const;
  void embed_backward(const Pass& pass, const TokenBatch& batch, const Saved& saved, float* d) const;
  void norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                     const float* dy, float* dz) const;

  model::ModelConfig config_;
  EncoderDescription description_;
  std::uint32_t hidden_threshold_, attention_threshold_;
  ParameterId word_ = 0, position_ = 0;
  std::optional<ParameterId> type_;
  Norm embedding_norm_;
  bool trains_embeddings_ = false;
  std::vector<Layer> layers_;
};

}  // namespace batchwright::engine
