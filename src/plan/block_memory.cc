#include "plan/block_memory.h"

#include <algorithm>

#include "plan/block_parts.h"

namespace batchwright::plan {

using model::Architecture;

bool layer_norm(Architecture a) {
  switch (a) {
    case Architecture::Bert:
    case Architecture::Roberta:
    case Architecture::DistilBert:
    case Architecture::Electra:
    case Architecture::Albert:
    case Architecture::DebertaV2:
    case Architecture::ModernBert:
    case Architecture::StarCoder2:
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
    case Architecture::GptNeoX:
    case Architecture::Opt:
    case Architecture::Bloom:
    case Architecture::Mpt:
    case Architecture::Falcon:
    case Architecture::Phi:
    case Architecture::StableLm:
    case Architecture::Olmo:
      return true;
    default:
      return false;
  }
}

double norm_saved(const Block& b, double width) {
  if (layer_norm(b.shape.config.architecture)) return b.p.residual * width + 8;
  return 4 * width + (b.full() ? b.p.residual * width : 0);
}

namespace {

// The input of a group of linear layers that read the same tensor.
double input_saved(const Block& b, std::initializer_list<Role> readers, double width) {
  double trained = 0, adapters = 0, packed = 0;
  for (const LinearShape& linear : b.shape.block) {
    if (std::find(readers.begin(), readers.end(), linear.role) == readers.end()) continue;
    if (b.full()) trained += 1;
    if (b.keeps_packed_inputs()) packed = b.p.product * width;
    if (!linear.lora) continue;
    const auto rank = static_cast<double>(b.request.lora_rank);
    const double type = b.casts_adapters() ? b.p.product : b.p.adapter;
    // LitGPT wraps query, key and value in one layer, which drops its input once.
    const bool shares_dropout = b.litgpt() && adapters > 0 && linear.role == Role::Value;
    adapters += type * rank + (shares_dropout ? 0 : (type + kMask) * width);
  }
  // Autocast makes a copy for every reader; otherwise all share one tensor.
  if (trained > 0) return (b.p.autocast ? trained * b.p.product : b.p.residual) * width;
  return adapters + packed;
}

enum class MlpKind { Gated, PlainKernel, PlainPython, Relu };

MlpKind mlp_kind(const Block& b) {
  const ModelShape& shape = b.shape;
  for (const LinearShape& linear : shape.block) {
    if (linear.role == Role::Gate || linear.role == Role::FusedGateUp) return MlpKind::Gated;
  }
  const std::string& name = shape.config.activation;
  // Transformers writes these in Python operators, others call the kernel.
  const bool hugging_face =
      b.request.framework == Framework::Transformers || b.request.framework == Framework::PyTorch;
  if (hugging_face && (name == "gelu_new" || name == "gelu_fast")) return MlpKind::PlainPython;
  if (name == "relu") return MlpKind::Relu;
  return MlpKind::PlainKernel;
}

bool down_is_wrapped(const ModelShape& shape) {
  return std::any_of(shape.block.begin(), shape.block.end(),
                     [](const LinearShape& l) { return l.role == Role::Down && l.lora; });
}

// Tokens that pass each expert's MLP, in units of the micro-batch's tokens.
double expert_share(const ModelShape& shape) {
  return shape.config.experts > 0 ? static_cast<double>(shape.config.experts_per_token) : 1;
}

double mlp_saved(const Block& b) {
  const double width = b.intermediate() * expert_share(b.shape), type = b.p.activation;
  double saved = 0;
  switch (mlp_kind(b)) {
    case MlpKind::Gated:  // the gate, its activation and the up projection
      saved = 3 * type * width;
      break;
    case MlpKind::PlainKernel:  // the activation's input
      saved = type * width;
      break;
    case MlpKind::PlainPython:  // x, 0.5 x, tanh and 1 + tanh
      saved = 4 * type * width;
      break;
    case MlpKind::Relu:  // only the output, which is the down projection's input
      saved = b.full() ? 0 : type * width;
      break;
  }
  if (b.shape.config.experts > 0)
    saved += 2 * type * b.hidden() * expert_share(b.shape);  // gathered, scattered
  if (b.full()) return saved + b.p.product * width;
  return saved + input_saved(b, {Role::Down}, width);
}

double block_saved(const Block& b) {
  const double h = b.hidden();
  const bool parallel = b.shape.config.parallel_residual;
  const Architecture a = b.shape.config.architecture;
  const double norms = a == Architecture::Gemma2 || a == Architecture::Gemma3 ? 4 : 2;
  double saved = norms * norm_saved(b, h);
  // A parallel block reads one normalised input for both branches.
  const bool shared_input = parallel && b.shape.config.architecture != Architecture::GptNeoX;
  if (shared_input) saved -= norm_saved(b, h);
  saved += input_saved(b, {Role::Query, Role::Key, Role::Value, Role::FusedQkv}, h);
  if (!(shared_input && b.full()))
    saved += input_saved(b, {Role::Gate, Role::Up, Role::FusedGateUp, Role::Router}, h);
  saved += attention_saved(b) + fused_projection_saved(b) + qk_norm_saved(b) + mlp_saved(b);
  if (!b.full()) saved += input_saved(b, {Role::AttentionOutput}, b.queries());
  if (b.dropout()) saved += 2 * kMask * h;
  return saved;
}

// What selective checkpointing keeps: attention's output and every second matrix product, as TorchTitan's
// per-operation policy does.
double selective_saved(const Block& b) {
  double outputs = 0;
  for (const LinearShape& linear : b.shape.block) {
    const double share = linear.count > 1 ? expert_share(b.shape) : 1;
    outputs += static_cast<double>(linear.out) * share;
  }
  return b.p.residual * b.hidden() + b.p.product * b.queries() + 4 * b.heads() +
         0.5 * b.p.activation * outputs;
}

// Experts run one after another: temporaries are those of one, for its share of the tokens.
double temporary_width(const Block& b) {
  const auto experts = static_cast<double>(std::max<std::int64_t>(1, b.shape.config.experts));
  return b.intermediate() * expert_share(b.shape) / experts;
}

double forward_extra(const Block& b) {
  const double width = temporary_width(b), h = b.hidden();
  const double stream = 3 * b.p.activation * h;
  if (!down_is_wrapped(b.shape) || b.full()) return b.p.activation * width + stream;
  // PEFT casts the input to the adapter's type; under autocast the dropped copy is cast once more.
  const double copies = b.casts_adapters() ? 2 : 1;
  return (b.p.activation + copies * b.p.adapter) * width + stream;
}

double backward_extra(const Block& b) {
  const double width = temporary_width(b), h = b.hidden();
  const bool gated = mlp_kind(b) == MlpKind::Gated;
  const double gradients = gated ? (b.full() ? 2 : 3) : (mlp_kind(b) == MlpKind::PlainPython ? 2 : 1);
  const double stream = (b.p.residual + b.p.activation) * h;
  double extra = gradients * b.p.activation * width + stream;
  if (!b.full() && down_is_wrapped(b.shape)) {
    // The adapter's input is free by then; its gradient exists before and after dropout, in the adapter's
    // type.
    const double type = b.casts_adapters() ? b.p.product : b.p.adapter;
    extra =
        std::max(extra - b.p.activation * width, (2 * b.p.adapter - type) * width + stream + b.p.adapter * h);
  }
  // Attention's backward runs when the MLP's tensors are free again.
  return std::max(extra, attention_backward(b) - mlp_saved(b) + stream);
}

}  // namespace

BlockMemory block_memory(const ModelShape& shape, const Request& request, const Precision& precision) {
  const Block b{shape, request, precision};
  BlockMemory memory;
  memory.boundary = precision.residual * b.hidden();
  memory.saved = block_saved(b);
  memory.scores = scores_saved(b);
  memory.selective = std::min(memory.saved, selective_saved(b));
  memory.forward_extra = forward_extra(b);
  memory.backward_extra = backward_extra(b);
  // FSDP with frozen weights keeps a second copy of every block's input in the backward pass. Fitted on
  // fms-acceleration's LoRA and QLoRA runs on 2 and 4 devices against the same runs on one: the growth a
  // token exceeds theirs by one boundary a block, for h from 4096 to 8192.
  const bool frozen_fsdp =
      request.sharding == Sharding::Fsdp && request.method != Method::Full && request.devices > 1;
  if (frozen_fsdp && request.checkpointing == Checkpointing::Full) memory.backward_copy = memory.boundary;
  return memory;
}

}  // namespace batchwright::plan
