#include "plan/native_memory.h"

#include <algorithm>
#include <cmath>

#include "plan/native_arena.h"

namespace batchwright::plan {
namespace {

constexpr double kFloat = 4;

double round_up(double count, double step) { return std::ceil(count / step) * step; }

// One thread's pass over `examples` sequences of `length` tokens.
class Pass {
 public:
  Pass(const ModelShape& shape, const Request& request, double examples)
      : shape_(shape),
        request_(request),
        h_(static_cast<double>(shape.config.hidden)),
        wide_(static_cast<double>(shape.config.intermediate)),
        heads_(static_cast<double>(shape.config.heads)),
        length_(static_cast<double>(request.longest())),
        examples_(examples),
        rows_(examples * length_) {}

  NativeArena arena() const {
    const auto layers = static_cast<double>(shape_.config.layers);
    NativeArena arena;
    const double scratch = 2 * rows_ * h_ + rows_ * wide_ + attention_scratch(shape_, request_) +
                           examples_ * h_ +
                           (request_.checkpointing == Checkpointing::Selective ? rows_ * wide_ : 0);
    arena.kept = embedding() + head();
    const double last = layer_kept(examples_);
    if (request_.checkpointing == Checkpointing::Full) {
      // Inputs only; one layer is recomputed at a time.
      arena.kept += (layers - 1) * rows_ * h_ + examples_ * h_;
      arena.temporary = scratch + layer_kept(rows_) + layer_backward(rows_) + rows_ * h_;
    } else {
      arena.kept += (layers - 1) * layer_kept(rows_) + last;
      arena.temporary = scratch + layer_backward(layers > 1 ? rows_ : examples_);
    }
    return arena;
  }

 private:
  bool trains_body() const { return request_.trains_all(); }
  bool drops() const { return shape_.config.hidden_dropout > 0; }

  double embedding() const {
    return rows_ * (h_ + (trains_body() ? h_ : 0) + 1 + (drops() ? mask_words(h_) : 0));
  }

  double head() const {
    const double dropped = shape_.config.head_dropout() > 0 ? h_ + mask_words(h_) : 0;
    // Pooled states, logits, and in the backward pass the gradients of the first rows.
    return examples_ * (2 * h_ + dropped + static_cast<double>(shape_.config.num_labels.value_or(2)));
  }

  // What the adapters of the layers with these roles keep a row.
  double adapters(std::initializer_list<Role> roles) const {
    double floats = 0;
    for (const LinearShape& linear : shape_.block) {
      if (!linear.lora || std::find(roles.begin(), roles.end(), linear.role) == roles.end()) continue;
      floats += mask_words(static_cast<double>(linear.in)) * (kAdapterDropout > 0 ? 1 : 0) +
                static_cast<double>(request_.lora_rank);
    }
    return floats;
  }

  bool wrapped(Role role) const {
    return std::any_of(shape_.block.begin(), shape_.block.end(),
                       [&](const LinearShape& l) { return l.lora && l.role == role; });
  }

  // The last layer computes keys and values of all rows, the rest for the first token of each example only.
  double layer_kept(double out_rows) const {
    const double norms = 2 * (h_ + 1 + (drops() ? mask_words(h_) : 0));
    const double wide = request_.checkpointing == Checkpointing::Selective ? 0 : wide_;
    double floats = rows_ * (3 * h_ + adapters({Role::Query, Role::Key, Role::Value}));
    floats += out_rows * (heads_ + h_ + norms + wide);
    return floats + out_rows * adapters({Role::AttentionOutput, Role::Up, Role::Down});
  }

  double layer_backward(double rows) const {
    const double through_dropout = drops() ? rows * h_ : 0;
    const auto rank = static_cast<double>(request_.lora_rank);
    // An adapter's backward: its gradient of A's output, and its dropped input or what goes back through the
    // mask.
    const double down = wrapped(Role::Down) ? rows * (rank + wide_) : 0;
    const double up = wrapped(Role::Up) ? rows * (rank + h_) : 0;
    const bool needs_input = trains_body() || wrapped(Role::Up);
    const double mlp = through_dropout + rows * wide_ + (needs_input ? rows * h_ : 0) + std::max(down, up);
    const double qkv =
        wrapped(Role::Query) || wrapped(Role::Key) || wrapped(Role::Value) ? rows * (rank + h_) : 0;
    const double output = wrapped(Role::AttentionOutput) ? rows * (rank + h_) : 0;
    const double attend =
        through_dropout +
        std::max(output, rows * 3 * h_ + std::max(qkv, attention_scratch(shape_, request_)));
    // Gradients of the residual sum and of the attention block, and under all of it the layer's input again.
    const double input = trains_body() || qkv > 0 ? rows * h_ : 0;
    return 2 * rows * h_ + std::max(mlp, attend) + input;
  }

  const ModelShape& shape_;
  const Request& request_;
  double h_, wide_, heads_, length_, examples_, rows_;
};

}  // namespace

double attention_scratch(const ModelShape& shape, const Request& request) {
  const auto length = static_cast<double>(request.longest());
  const double keys = round_up(length, 16) + 16, block = std::min(48.0, length),
               width = round_up(static_cast<double>(shape.config.head_dim), 16);
  const double scores = 4 * length * width + 2 * width * keys + block * (3 * width + 2 * keys);
  const bool masks = shape.config.attention_dropout > 0;
  const auto heads = static_cast<double>(shape.config.heads);
  return scores + (masks ? round_up(heads * length * mask_words(length), 16) : 0);
}

bool counts_natively(const ModelShape& shape) {
  using model::Architecture;
  if (shape.encoder()) return shape.head == model::Head::SequenceClassification;
  if (shape.head != model::Head::SequenceClassification && shape.head != model::Head::CausalLm) return false;
  switch (shape.config.architecture) {
    case Architecture::Gpt2:
    case Architecture::Llama:
    case Architecture::Mistral:
    case Architecture::Qwen2:
    case Architecture::Qwen3:
      return true;
    default:
      return false;
  }
}

NativeMemory native_memory(const ModelShape& shape, const Request& request, const hardware::Device& device,
                           const Split& split) {
  const auto threads = static_cast<std::int64_t>(std::max(1, device.multiprocessors));
  NativeMemory memory;
  const double trained = request.trains_all()
                             ? shape.parameters
                             : shape.adapter_parameters(request.lora_rank) + shape.head_parameters;
  memory.weights = shape.parameters * kFloat;
  memory.adapters = request.trains_all() ? 0 : (trained - shape.head_parameters) * kFloat;
  memory.gradients = static_cast<double>(threads) * trained * kFloat;  // every thread sums its own
  memory.optimizer_state = 2 * trained * kFloat;
  for (std::int64_t thread = 0; thread < threads; ++thread) {
    const bool shared = split.micro_batch >= threads;
    const std::int64_t share = split.micro_batch / threads + (thread < split.micro_batch % threads ? 1 : 0);
    const std::int64_t examples =
        shared ? share : (thread < split.accumulation_steps ? split.micro_batch : 0);
    if (examples == 0) continue;
    const auto share_of_batch = static_cast<double>(examples);
    const NativeArena arena = shape.encoder() ? Pass(shape, request, share_of_batch).arena()
                                              : decoder_arena(shape, request, share_of_batch);
    memory.kept += arena.kept * kFloat;
    memory.temporary += arena.temporary * kFloat;
  }
  return memory;
}

}  // namespace batchwright::plan
