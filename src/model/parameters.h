#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"

namespace batchwright::model {

// What stands on top of the Transformer's body; decides the head's modules and BERT's pooler.
enum class Head { None, SequenceClassification, TokenClassification, QuestionAnswering, CausalLm };

// The part of the model a module belongs to, for counts and for the memory model.
enum class Part { Embedding, Attention, Mlp, Norm, Pooler, Head };

enum class ModuleKind { Linear, Embedding, Norm };

// What a module does in its block, whatever the family calls it. Norms are named after the half of the block
// that they serve: BERT's families norm its output, the decoders its input.
enum class Role {
  WordEmbedding,
  PositionEmbedding,
  TypeEmbedding,
  EmbeddingProjection,
  EmbeddingNorm,
  Query,
  Key,
  Value,
  QueryKeyValue,  // the three in one weight, in this order
  AttentionOutput,
  QueryNorm,  // of each head
  KeyNorm,
  AttentionNorm,
  Router,
  Gate,
  Up,
  GateUp,  // both in one weight
  Down,
  MlpNorm,
  ExtraNorm,  // Gemma 2's, around the MLP
  FinalNorm,
  Pooler,
  HeadDense,   // the first layer of a head with two
  HeadOutput,  // labels, or the vocabulary
};
Part part_of(Role role);

// One module that owns weights. Names are those of Hugging Face
// ("bert.encoder.layer.0.attention.self.query").
struct Module {
  std::string name;
  ModuleKind kind = ModuleKind::Linear;
  Role role = Role::Up;
  Part part = Part::Mlp;  // part_of(role)
  std::int64_t out = 0;   // Linear: outputs; Embedding: rows; Norm: width
  std::int64_t in = 0;    // Linear: inputs; Embedding: width; Norm: 0
  bool bias = false;
  std::int64_t layer = -1;  // the block it stands in; -1 outside
  bool transposed = false;  // GPT-2's Conv1D keeps [in, out]
  bool tied = false;        // its weight is another module's (a tied head): no tensor, no parameters

  std::int64_t parameters() const;  // weight and bias; 0 for the weight when tied
};

// One stored tensor; `shape` as on disk.
struct TensorShape {
  std::string name;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
};

// Every module in the order in which Transformers registers it. num_labels is the width of a classification
// head (ignored for None, CausalLm and QuestionAnswering, which has 2). Names carry the body's prefix
// ("bert.", "model.") unless head is None, as save_pretrained writes them.
std::vector<Module> list_modules(const ModelConfig& config, Head head, std::int64_t num_labels = 2);

// The tensors of those modules, as model.safetensors holds them.
std::vector<TensorShape> list_tensors(const ModelConfig& config, Head head, std::int64_t num_labels = 2);

struct ParameterCounts {
  std::int64_t embedding = 0, attention = 0, mlp = 0, norm = 0, pooler = 0, head = 0;

  std::int64_t total() const { return embedding + attention + mlp + norm + pooler + head; }
};

ParameterCounts count_parameters(const ModelConfig& config, Head head, std::int64_t num_labels = 2);

// Whether `name` is `wanted` or ends in it at a dot: "a.b.dense" is called "dense", and not "nse".
bool is_named(std::string_view name, std::string_view wanted);

// The linear modules that LoRA wraps. `targets` are module names, matched whole or by suffix as PEFT does
// ("dense" matches every "...dense"), or the one word "all-linear": every linear module but the head
// (PEFT's _maybe_include_all_linear_layers). Throws Usage naming a target that matches nothing, with the
// nearest module name.
std::vector<Module> lora_modules(const std::vector<Module>& modules, const std::vector<std::string>& targets);

// rank * (in + out) over the wrapped modules: A is [rank, in], B is [out, rank]. Hu et al. 2021, section 4.
std::int64_t lora_parameters(const std::vector<Module>& wrapped, std::int64_t rank);

}  // namespace batchwright::model
