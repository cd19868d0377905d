#include "plan/block_memory.h"
#include "plan/block_parts.h"

namespace batchwright::plan {
namespace {

// Bytes a logit, forward and backward. Read in the frameworks' source and seen in measurements:
// - Transformers upcasts to fp32 (2 + 4), keeps log-softmax (4) and makes two fp32 gradients of it: 10
// and 12.
//   fms-acceleration's PowerLM-3b rows give 12, its older Mistral rows 14.
// - A plain loop holds the logits while it calls backward: 2 more, or 4 where preparation for k-bit training
//   left the head in fp32 (can-i-finetune-this: 16 bytes a logit to 0.1, beside 14 of its LoRA run).
// - A fused kernel overwrites fp32 logits with their gradient: 8 (fms-acceleration's Llama-3-8B rows: 8.1).
// - Chunked: a chunk's logits only; torchtune and litgpt keep 16-bit logits of all chunks.
struct LogitBytes {
  double forward, backward;
};

LogitBytes logit_bytes(const Request& request, double type) {
  switch (request.loss) {
    case Loss::FullLogits: {
      if (request.framework == Framework::Native) return {type + 4, type + 4};
      const double logits = request.kbit_preparation ? 4 : type;
      return {type + 8 - (type > 2 ? 4 : 0), 12 + (request.framework == Framework::PyTorch ? logits : 0)};
    }
    case Loss::Fused:
      return {type + 4, 8};
    case Loss::Chunked:
      // Fabric's precision plugins answer in fp32: logits, log-softmax and the gradient of the one for the
      // other.
      if (request.framework == Framework::LitGpt) return {8, 10};
      if (request.framework == Framework::TorchTune) return {type + 2, type + 2};
      return {0, 0};
  }
  return {12, 12};
}

}  // namespace

LossMemory loss_memory(const ModelShape& shape, const Request& request, const Precision& precision) {
  const Block b{shape, request, precision};
  const double h = b.hidden();
  LossMemory loss;
  loss.final_states = norm_saved(b, h) + precision.residual * h;
  if (shape.head == model::Head::SequenceClassification) {
    if (shape.encoder()) loss.final_states = precision.residual * h;
    return loss;  // one row of labels an example is nothing beside the blocks
  }
  double width = static_cast<double>(shape.config.vocabulary);
  if (shape.head == model::Head::TokenClassification)
    width = static_cast<double>(shape.config.num_labels.value_or(2));
  if (shape.head == model::Head::QuestionAnswering) width = 2;
  const LogitBytes bytes = logit_bytes(request, precision.product);
  loss.forward = bytes.forward * width;
  loss.backward = bytes.backward * width;
  loss.logits_block = bytes.backward > 0 ? 4 * width : 0;
  // A chunk's logits are computed in fp32, and the head's weights with them. The seed experiment's three
  // splits show it (5.45 to 5.81 GiB reserved on a T4, 1.9 GiB above weights and adapters); in larger models
  // the backward pass hides it.
  const bool keeps_chunks = request.framework == Framework::TorchTune ||
                            request.framework == Framework::LitGpt || request.framework == Framework::Native;
  if (request.loss == Loss::Chunked && !keeps_chunks) loss.head_copy = 4 * width * h;
  if (request.loss == Loss::Chunked)
    loss.forward += 6 * h, loss.backward += 6 * h;  // a chunk holds about h logits a token
  return loss;
}

}  // namespace batchwright::plan
