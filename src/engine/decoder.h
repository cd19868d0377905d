#pragma once

#include <optional>
#include <vector>

#include "engine/block.h"
#include "engine/body.h"
#include "model/config.h"
#include "model/rotary.h"

namespace batchwright::engine {

// In what the families of decoders differ; names, biases, the number of key-value heads and whether queries
// and keys are normed come from the model's configuration and module list.
struct DecoderDescription {
  NormKind norm = NormKind::Rms;
  double norm_epsilon = 1e-6;
  std::optional<Activation> activation = {};  // of a plain MLP; none: a gated one, silu(gate) * up
  std::optional<model::Rotary> rotary = {};   // none: learned positions
  double embedding_dropout = 0, residual_dropout = 0, attention_dropout = 0;
  // A layer each: how many keys a query sees (0: all before it), and the factor of the scores.
  std::vector<std::int64_t> windows = {};
  std::vector<float> score_scales = {};
};

// What Llama and the families after it have in common: RMSNorm, rotary positions, a gated MLP, and the window
// that model::attention_window gives each layer. Throws Error(Unsupported) for another activation or
// rope_type.
DecoderDescription rotary_decoder(const model::ModelConfig& config);

// A causal Transformer whose blocks norm the input of each branch and add its output to the residual stream:
// GPT-2 (Radford et al. 2019), Llama (Touvron et al. 2023) and the families after it.
class Decoder final : public Body {
 public:
  Decoder(const model::ModelConfig& config, const DecoderDescription& description,
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
    Linear qkv, attention_output, up, down;  // up: gate and up side by side in a gated MLP
    Norm attention_norm, mlp_norm;
    std::optional<Norm> query_norm, key_norm;
  };
  // Kept from forward for backward, per layer; [rows, ...] in the arena.
  struct LayerSaved {
    NormSaved attention_norm, mlp_norm;
    float* qkv = nullptr;  // biases added; rotated, or where heads are normed, normalized and not yet rotated
    float *query_inverse = nullptr, *key_inverse = nullptr;  // inverse_std of the heads' norms
    AttentionSaved attention;
    float* wide = nullptr;  // [rows, up.out], before the activation
    std::uint32_t *attention_mask = nullptr, *mlp_mask = nullptr;
    LinearSaved qkv_saved, attention_output_saved, up_saved, down_saved;
  };
  // Workspace that every layer's forward reuses, and backward after it.
  struct Scratch {
    float *stream = nullptr, *taken = nullptr;   // the residual stream [rows, hidden], and at the wanted rows
    float *normed = nullptr, *branch = nullptr;  // [rows, hidden]
    float* activated = nullptr;                  // [rows, intermediate]
    float* wide = nullptr;                       // selective checkpointing only
    float* rotated = nullptr;                    // [rows, queries + keys], where heads are normed
    float *cosine = nullptr, *sine = nullptr;    // [longest sequence, head_dim / 2]
    float* attention = nullptr;
  };
  struct Saved final : Activations {
    Scratch scratch;
    std::uint32_t* embedding_mask = nullptr;
    std::vector<LayerSaved> layers;
    std::vector<const float*> inputs;  // of every layer, under full checkpointing
    NormSaved final_norm;
  };

  bool is_last(const Layer& layer) const { return &layer == &layers_.back(); }
  // The last layer's output is taken at the wanted rows alone, once its attention is done.
  bool takes_rows(const Shard& shard, const Layer& layer) const {
    return is_last(layer) && shard.wants != WantedRows::All;
  }
  const TokenBatch& output_rows(const Shard& shard, const Layer& layer) const {
    return is_last(layer) ? shard.wanted_rows() : shard.tokens;
  }
  std::int64_t query_width() const { return config_.heads * config_.head_dim; }
  std::int64_t key_width() const { return config_.kv_heads * config_.head_dim; }
  bool gated() const { return !description_.activation.has_value(); }
  bool norms_heads() const { return layers_.front().query_norm.has_value(); }

  Scratch take_scratch(const Pass& pass, const Shard& shard, bool keep) const;
  void embed(const Pass& pass, const TokenBatch& batch, Saved& saved, float* out) const;
  // normed = norm(sum of stream and branch); branch, its bias and mask may be nullptr. sum may be the stream.
  void norm_forward(const Pass& pass, const Norm& norm, const ResidualNorm& input, NormSaved& saved) const;
  void layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                     const Scratch& scratch, float* y, LayerSaved& saved) const;
  void project_heads(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                     LayerSaved& saved) const;
  void mlp_forward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                   float* y, LayerSaved& saved) const;
  void wide_forward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const float* x,
                    float* wide, LinearSaved& saved) const;
  void activate(const Pass& pass, const float* wide, std::int64_t rows, float* out) const;

  Attention attention_shape(const Pass& pass, std::int64_t layer) const;
  Attention attention(const Pass& pass, const Shard& shard, const Layer& layer, const Scratch& scratch,
                      const LayerSaved& saved) const;
  // Turns (or with `backward` turns back) the queries and keys in x, rows `x_stride` apart, into y.
  void rotate(const Pass& pass, const TokenBatch& batch, const Scratch& scratch, const Layer* gammas,
              const float* x, std::int64_t x_stride, float* y, std::int64_t y_stride, bool backward) const;

  // d: the gradient of the layer's output [output rows, hidden], and afterwards that of its input [rows,
  // hidden].
  void layer_backward(const Pass& pass, const Shard& shard, const Layer& layer, const Scratch& scratch,
                      const LayerSaved& saved, const float* dy, float* dx) const;
  void mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                    const LayerSaved& saved, const float* dy, float* d_normed) const;
  void attention_part_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                               const Scratch& scratch, const LayerSaved& saved, const float* dz,
                               float* d_normed) const;
  void heads_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                      const LayerSaved& saved, float* d_qkv) const;
  void norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                     const float* dy, const float* residual, float* dz) const;

  model::ModelConfig config_;
  DecoderDescription description_;
  std::uint32_t embedding_threshold_, residual_threshold_, attention_threshold_;
  ParameterId word_ = 0;
  std::optional<ParameterId> position_;
  bool trains_embeddings_ = false;
  std::vector<Layer> layers_;
  Norm final_norm_;
};

}  // namespace batchwright::engine
