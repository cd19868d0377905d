#include "plan/memory.h"

#include <algorithm>

#include "plan/native_memory.h"

namespace batchwright::plan {
namespace {

bool is_deepspeed(Sharding sharding) {
  return sharding == Sharding::Zero1 || sharding == Sharding::Zero2 || sharding == Sharding::Zero3;
}

double tokens_of(const Split& split, const Request& request) {
  return static_cast<double>(split.micro_batch) * static_cast<double>(request.longest());
}

}  // namespace

std::string_view name_of(Moment moment) {
  switch (moment) {
    case Moment::Loss:
      return "loss";
    case Moment::BackwardFirst:
      return "backward of the last block";
    case Moment::BackwardLast:
      return "backward of the first block";
    case Moment::OptimizerStep:
      return "optimizer step";
  }
  return "";
}

MemoryModel::MemoryModel(const ModelShape& shape, const Request& request, const hardware::Device& device)
    : shape_(shape),
      request_(request),
      device_(device),
      precision_(precision_of(request)),
      block_(block_memory(shape, request, precision_)),
      loss_(loss_memory(shape, request, precision_)) {
  count_weights();
  count_optimizer();
  apply_sharding();
  const auto h = static_cast<double>(shape.config.hidden);
  // Encoders normalise and drop their embeddings; a decoder's are its first block's input.
  if (shape.encoder()) embedding_saved_ = (precision_.residual + 1) * h;
}

void MemoryModel::count_weights() {
  const Precision& p = precision_;
  const double blocks = shape_.stored_blocks * shape_.block_linear_parameters;
  const double rest = shape_.parameters - blocks;
  if (request_.trains_all()) {
    trained_ = shape_.parameters;
    fixed_.weights = trained_ * p.trained_weight;
    fixed_.gradients = trained_ * p.gradient;
    fixed_.largest_gradient = shape_.largest_tensor * p.gradient;
    fixed_.late_gradients = (shape_.block_parameters + shape_.input_embedding_parameters) * p.gradient;
    // Autograd reaches the head and the final norm before any block.
    fixed_.head_gradients = shape_.head == model::Head::CausalLm ? shape_.largest_tensor * p.gradient : 0;
  } else {
    // The head of a classifier and what else is trained in full are copies beside the frozen ones (PEFT's
    // modules_to_save).
    trained_ = shape_.adapter_parameters(request_.lora_rank) + shape_.extra_trained + shape_.head_parameters;
    fixed_.weights = blocks * p.packed_weight + rest * p.plain_weight;
    fixed_.adapters = trained_ * p.adapter;
    fixed_.gradients = trained_ * p.adapter;
  }
  if (p.autocast) {
    fixed_.cast_block = request_.method == Method::Qlora ? 0 : shape_.block_linear_parameters * p.product;
    fixed_.cast_weights = fixed_.cast_block * shape_.stored_blocks;
  }
}

// AdamW: two moments; foreach makes one copy of the second (torch.optim.adamw: exp_avg_sq_sqrt), fused none.
// 8-bit: a byte a moment and its scales (Dettmers et al. 2021). Adafactor: a row and a column a matrix, and
// fp32 updates one tensor at a time.
void MemoryModel::count_optimizer() {
  const double type = request_.trains_all() ? precision_.state : precision_.adapter;
  switch (request_.optimizer) {
    case Optimizer::AdamW:
      fixed_.states = 2 * type * trained_;
      fixed_.optimizer_temporary = device_.is_cpu() ? shape_.largest_tensor * type : type * trained_;
      break;
    case Optimizer::AdamWFused:
      fixed_.states = 2 * type * trained_;
      break;
    case Optimizer::AdamW8bit:
      fixed_.states = 2.04 * trained_;
      break;
    case Optimizer::PagedAdamW8bit:  // lives in unified memory and is paged out when the device is full
    case Optimizer::Sgd:
      break;
    case Optimizer::Adafactor:
      fixed_.states = 8 * trained_ / static_cast<double>(shape_.config.hidden);
      fixed_.optimizer_temporary = request_.trains_all() ? 8 * shape_.largest_tensor : 0;
      break;
  }
}

// One block's weights as they travel: packed ones stay packed until their products need them.
double MemoryModel::block_as_gathered() const {
  const double linear = request_.method == Method::Qlora ? precision_.packed_weight : precision_.product;
  return (shape_.block_parameters - shape_.block_linear_parameters) * precision_.product +
         shape_.block_linear_parameters * linear;
}

void MemoryModel::apply_sharding() {
  const auto n = static_cast<double>(request_.devices);
  const Sharding sharding =
      request_.devices > 1 || is_deepspeed(request_.sharding) ? request_.sharding : Sharding::None;
  const double gather = precision_.product;
  if (is_deepspeed(sharding) && precision_.product < 4) {
    // DeepSpeed trains a 16-bit copy and keeps fp32 masters with the moments (Rajbhandari et al. 2020).
    if (request_.trains_all()) fixed_.weights = trained_ * gather;
    fixed_.adapters = request_.trains_all() ? 0 : trained_ * gather;
    fixed_.gradients = trained_ * gather;
    fixed_.late_gradients = std::min(fixed_.late_gradients, fixed_.gradients);
    if (request_.optimizer == Optimizer::AdamW || request_.optimizer == Optimizer::AdamWFused) {
      fixed_.states = 12 * trained_ / n;
      fixed_.optimizer_temporary = 4 * trained_ / n;  // fp32 gradients of this device's share
    }
    // Buckets of 2e8 elements, one filled while another is sent (Transformers' documented configuration).
    fixed_.buffers = 2 * std::min(trained_, 2e8) * gather;
    fixed_.cast_weights = fixed_.cast_block = 0;
  } else {
    fixed_.states /= is_deepspeed(sharding) || sharding == Sharding::Fsdp ? n : 1;
    fixed_.optimizer_temporary /= is_deepspeed(sharding) || sharding == Sharding::Fsdp ? n : 1;
  }
  fixed_.accumulated_gradients = fixed_.gradients;
  // DDP copies gradients into buckets that exist from the start (gradient_as_bucket_view is off by default).
  if (sharding == Sharding::Ddp) fixed_.buffers = fixed_.gradients;
  if (sharding == Sharding::Zero2 || sharding == Sharding::Zero3 || sharding == Sharding::Fsdp) {
    fixed_.gradients /= n;
    fixed_.head_gradients /= n;
    fixed_.late_gradients /= n;
    // Accelerate accumulates under no_sync: every device then holds whole gradients.
    fixed_.accumulated_gradients = sharding == Sharding::Fsdp ? trained_ * gather : fixed_.gradients;
  }
  if (sharding == Sharding::Zero3 || sharding == Sharding::Fsdp) {
    fixed_.gathered_block = block_as_gathered();
    fixed_.gathered_root = shape_.embedding_parameters * gather;
    fixed_.block_gradients = request_.trains_all() ? shape_.block_parameters * gather : 0;
    fixed_.weights /= n;
    fixed_.adapters /= n;
    fixed_.cast_weights = fixed_.cast_block = 0;  // shards are cast as they are gathered
  }
  if (request_.offload != Offload::None) fixed_.states = fixed_.optimizer_temporary = 0;
  if (request_.offload == Offload::All) {
    fixed_.gathered_root = shape_.embedding_parameters * gather;
    fixed_.gathered_block = 2 * block_as_gathered();  // one computes while the next arrives
    fixed_.weights = fixed_.gradients = fixed_.late_gradients = fixed_.accumulated_gradients = 0;
    fixed_.head_gradients = 0;
  }
}

double MemoryModel::block_kept() const {
  switch (request_.checkpointing) {
    case Checkpointing::None:
      return block_.saved;
    case Checkpointing::Full:
      return block_.boundary;
    case Checkpointing::Selective:
      return block_.selective;
  }
  return block_.saved;
}

MemoryParts MemoryModel::at_loss(const Split& split, MemoryParts parts) const {
  const double tokens = tokens_of(split, request_);
  const auto layers = static_cast<double>(shape_.config.layers);
  parts.activations = (embedding_saved_ + layers * block_kept()) * tokens;
  if (split.accumulation_steps > 1) parts.gradients = fixed_.accumulated_gradients;
  double forward = loss_.forward * tokens, backward = loss_.backward * tokens;
  // Autocast's copies live as long as the graph needs them; with checkpointing until the forward pass ends,
  // and only those of weights that train are cached.
  const bool keeps_graph = request_.checkpointing == Checkpointing::None;
  const double copies = keeps_graph || request_.trains_all() ? fixed_.cast_weights : 0;
  forward += copies;
  if (keeps_graph) backward += copies;
  parts.temporary = fixed_.gathered_root + (keeps_graph || forward > backward ? copies : 0);
  parts.loss = loss_.head_copy + loss_.final_states * tokens + std::max(forward, backward) -
               (parts.temporary - fixed_.gathered_root);
  return parts;
}

MemoryParts MemoryModel::in_backward(const Split& split, bool first, MemoryParts parts) const {
  const double tokens = tokens_of(split, request_);
  const auto layers = static_cast<double>(shape_.config.layers);
  const bool recomputes = request_.checkpointing != Checkpointing::None;
  parts.activations =
      (embedding_saved_ + (first ? layers : 1) * (block_kept() + block_.backward_copy)) * tokens;
  // Gradients appear from the head downwards: the first block's and the embedding's own come last.
  parts.gradients = first ? fixed_.head_gradients : fixed_.gradients - fixed_.late_gradients;
  if (split.accumulation_steps > 1) parts.gradients = fixed_.accumulated_gradients + fixed_.largest_gradient;
  const double recomputed =
      recomputes ? block_.saved -
                       (block_kept() - (request_.checkpointing == Checkpointing::Full ? block_.boundary : 0))
                 : 0;
  const double extra =
      recomputes ? std::max(block_.forward_extra, block_.backward_extra) : block_.backward_extra;
  parts.temporary = (std::max(0.0, recomputed) + extra) * tokens + fixed_.gathered_root +
                    fixed_.gathered_block + fixed_.block_gradients;
  parts.temporary += recomputes ? fixed_.cast_block : (first ? fixed_.cast_weights : fixed_.cast_block);
  return parts;
}

MemoryParts MemoryModel::at(Moment moment, const Split& split) const {
  MemoryParts parts;
  parts.weights = fixed_.weights;
  parts.adapters = fixed_.adapters;
  parts.optimizer_state = fixed_.states;
  MemoryParts result;
  switch (moment) {
    case Moment::Loss:
      result = at_loss(split, parts);
      break;
    case Moment::BackwardFirst:
      result = in_backward(split, true, parts);
      break;
    case Moment::BackwardLast:
      result = in_backward(split, false, parts);
      break;
    case Moment::OptimizerStep:
      result = parts;
      result.gradients = split.accumulation_steps > 1 && request_.sharding != Sharding::Fsdp
                             ? fixed_.accumulated_gradients
                             : fixed_.gradients;
      result.temporary = fixed_.optimizer_temporary;
      break;
  }
  result.temporary += fixed_.buffers;
  return result;
}

// batchwright-engine on the CPU: its peak is in the backward pass, over arenas whose size is known.
MemoryPrediction MemoryModel::predict_native(const Split& split) const {
  const NativeMemory memory = native_memory(shape_, request_, device_, split);
  MemoryPrediction prediction;
  prediction.moment = Moment::BackwardFirst;
  prediction.parts.weights = memory.weights;
  prediction.parts.adapters = memory.adapters;
  prediction.parts.gradients = memory.gradients;
  prediction.parts.optimizer_state = memory.optimizer_state;
  prediction.parts.activations = memory.kept;
  prediction.parts.temporary = memory.temporary;
  prediction.allocated = prediction.reserved = prediction.needed = prediction.parts.total();
  // libtorch, its threads and the program: what the allocator does not count.
  const double program = 230 * 1048576.0;
  prediction.process = prediction.allocated + program;
  prediction.context = program;
  if (request_.counter == Counter::Process) prediction.parts.context = program;
  return prediction;
}

MemoryPrediction MemoryModel::predict(const Split& split) const {
  if (request_.framework == Framework::Native && device_.is_cpu() && counts_natively(shape_))
    return predict_native(split);
  MemoryPrediction prediction;
  double highest = -1;
  for (const Moment moment :
       {Moment::Loss, Moment::BackwardFirst, Moment::BackwardLast, Moment::OptimizerStep}) {
    const MemoryParts parts = at(moment, split);
    if (parts.total() <= highest) continue;
    highest = parts.total();
    prediction.parts = parts;
    prediction.moment = moment;
  }
  add_counters(prediction, tokens_of(split, request_));
  return prediction;
}

}  // namespace batchwright::plan
