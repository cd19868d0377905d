#pragma once

#include <vector>

#include "engine/classifier.h"

namespace batchwright::engine {

// BERT (Devlin et al. 2018) with a sequence-classification head, as Transformers'
// BertForSequenceClassification: post-norm layers, exact GELU, tanh pooler on the first token.
class Bert final : public Classifier {
 public:
  Bert(const model::ModelConfig& config, const run::TrainingOptions& options, std::int64_t classes,
       Parameters& parameters);

  double forward_backward(const Pass& pass, const Shard& shard, double loss_scale,
                          profile::PhaseClock* clock) const override;
  const float* logits(const Pass& pass, const Shard& shard) const override;
  std::int64_t classes() const override { return classes_; }

 private:
  struct Norm {
    ParameterId gamma = 0, beta = 0;
  };
  struct Layer {
    Linear qkv, attention_output, intermediate, mlp_output;
    Norm attention_norm, mlp_norm;
  };
  // Kept from forward for backward, per layer; [rows, ...] in the arena.
  struct NormSaved {
    std::uint32_t* mask = nullptr;
    float *normalized = nullptr, *inverse_std = nullptr;
  };
  struct LayerSaved {
    float *qkv = nullptr, *lse = nullptr, *context = nullptr, *intermediate = nullptr;
    NormSaved attention_norm, mlp_norm;
    LinearSaved qkv_saved, attention_output_saved, intermediate_saved, mlp_output_saved;
  };
  // Workspace that every layer's forward reuses, and backward after it.
  struct Scratch {
    float* outputs[2] = {nullptr, nullptr};  // [rows, hidden], of odd and even layers
    float *wide = nullptr, *attention = nullptr, *firsts = nullptr;
    float* intermediate = nullptr;  // selective checkpointing only
  };
  struct Saved {
    Scratch scratch;
    NormSaved embedding_norm;
    float* embedded = nullptr;  // [rows, hidden], the first layer's input
    std::vector<LayerSaved> layers;
    std::vector<const float*> inputs;   // of every layer; still there in backward under full checkpointing
    const float* first_rows = nullptr;  // [size, hidden], the head's input
    float *pooled = nullptr, *dropped = nullptr, *logits = nullptr;  // [size, ...]
    std::uint32_t* pooled_mask = nullptr;
    LinearSaved pooler_saved, head_saved;
  };

  void declare(Parameters& parameters, const run::TrainingOptions& options);
  Norm declare_norm(Parameters& parameters, const std::string& name, bool trainable) const;

  bool is_last(const Layer& layer) const { return &layer == &layers_.back(); }
  const TokenBatch& output_rows(const Shard& shard, const Layer& layer) const;
  Attention attention(const Pass& pass, const Layer& layer, const float* qkv) const;

  // keep: hold what backward needs; otherwise a layer's memory is free again after it.
  void forward(const Pass& pass, const Shard& shard, bool keep, Saved& saved) const;
  void embed(const Pass& pass, const TokenBatch& batch, Saved& saved) const;
  void layer_forward(const Pass& pass, const Shard& shard, const Layer& layer, const float* x,
                     const Scratch& scratch, float* y, LayerSaved& saved) const;
  void head_forward(const Pass& pass, const TokenBatch& firsts, const float* x, Saved& saved) const;

  void head_backward(const Pass& pass, const TokenBatch& firsts, const Saved& saved, float* dx) const;
  // dx, the gradient of the layer's input, may be dy's memory, and nullptr when nothing needs it.
  void layer_backward(const Pass& pass, const Shard& shard, const Layer& layer,
                      const Scratch& forward_scratch, const float* x, const LayerSaved& saved,
                      const float* dy, float* dx) const;
  void mlp_backward(const Pass& pass, const TokenBatch& batch, const Layer& layer, const Scratch& scratch,
                    const LayerSaved& saved, const float* d_dense, float* dx) const;
  void embed_backward(const Pass& pass, const TokenBatch& batch, const Saved& saved, float* d) const;
  // Recomputes gamma * normalized + beta into the arena.
  const float* norm_output(const Pass& pass, const Norm& norm, const NormSaved& saved,
                           std::int64_t rows) const;
  void norm_backward(const Pass& pass, const Norm& norm, const NormSaved& saved, std::int64_t rows,
                     const float* dy, float* dz) const;

  model::ModelConfig config_;
  std::int64_t classes_;
  bool trains_body_;
  std::uint32_t hidden_threshold_, attention_threshold_, head_threshold_;
  ParameterId word_ = 0, position_ = 0, type_ = 0;
  Norm embedding_norm_;
  std::vector<Layer> layers_;
  Linear pooler_, head_;
};

}  // namespace batchwright::engine
