#include "engine/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "engine/hello.h"
#include "engine/stepper.h"
#include "engine/training_job.h"

namespace batchwright::engine {
namespace {

// float32 sums in another order differ by about 1e-6 of a tensor's norm; Transformers itself meets 1e-5
// between splits.
constexpr double kTolerance = 1e-5;

struct Comparison {
  double worst =
      0;  // |difference| / max(|tensor's gradient|, 1e-3 |whole gradient|), the largest over tensors
  std::string worst_tensor;
  double factor = 1;  // the multiple of the reference that the gradient is nearest to
};

Comparison compare(const Parameters& parameters, std::span<const float> gradient,
                   std::span<const float> reference) {
  double whole = 0, along = 0;
  for (std::size_t i = 0; i < reference.size(); ++i) {
    whole += static_cast<double>(reference[i]) * reference[i];
    along += static_cast<double>(gradient[i]) * reference[i];
  }
  Comparison result;
  if (whole > 0) result.factor = along / whole;
  for (const Parameter& p : parameters.all()) {
    if (!p.trainable) continue;
    double difference = 0, own = 0;
    for (auto i = static_cast<std::size_t>(p.offset); i < static_cast<std::size_t>(p.offset + p.count); ++i) {
      const double gap = static_cast<double>(gradient[i]) - reference[i];
      difference += gap * gap;
      own += static_cast<double>(reference[i]) * reference[i];
    }
    const double scale = std::max(std::sqrt(own), 1e-3 * std::sqrt(whole));
    const double relative = scale > 0 ? std::sqrt(difference) / scale : std::sqrt(difference);
    // A difference that is not a number is the worst of all, and stays it.
    if (!std::isnan(result.worst) && !(relative <= result.worst)) {
      result.worst = relative;
      result.worst_tensor = p.name;
    }
  }
  return result;
}

class Verification {
 public:
  Verification(TrainingJob& training, Stepper& stepper)
      : training_(training), stepper_(stepper), window_(training.sampler.window(0)) {
    perturb_adapters();
    const auto all = static_cast<std::int64_t>(window_.size());
    reference_loss_ = stepper_.accumulate(window_, {.micro_batch = all}, 0).loss;
    reference_ = stepper_.sum_gradients();
    stepper_.release_activations();
    require_something_to_compare();
  }

  Json check(const Cut& cut) {
    const bool tokens = cut.micro_tokens > 0;
    const std::int64_t effective = training_.job.options.effective_batch;
    Json row = {{"micro_batch", tokens ? Json() : Json(cut.micro_batch)},
                {"accumulation_steps", tokens ? Json() : Json(effective / cut.micro_batch)},
                {"layout", data::layout_name(cut.layout)},
                {"micro_tokens", tokens ? Json(cut.micro_tokens) : Json()},
                {"checkpointing", checkpointing_name(cut.checkpointing)},
                {"max_relative_gradient_difference", nullptr},
                {"worst_tensor", nullptr},
                {"loss_difference", nullptr},
                {"factor", nullptr},
                {"kind", nullptr},
                {"verdict", "out_of_memory"}};
    try {
      const double loss = stepper_.accumulate(window_, cut, 0).loss;
      const Comparison result = compare(training_.model->parameters, stepper_.sum_gradients(), reference_);
      const bool same = result.worst <= kTolerance;
      row["max_relative_gradient_difference"] = result.worst;
      row["worst_tensor"] = result.worst_tensor;
      row["loss_difference"] = loss - reference_loss_;
      row["factor"] = result.factor;
      row["verdict"] = same ? "same" : "different";
      all_same_ = all_same_ && same;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::OutOfMemory) throw;
    }
    stepper_.release_activations();
    return row;
  }

  bool all_same() const { return all_same_; }

  // Token budgets that make two and four micro-batches of this window.
  std::vector<std::int64_t> token_budgets() const {
    std::int64_t tokens = 0;
    for (const std::uint32_t row : window_) tokens += training_.tokens.length(row);
    return {(tokens + 1) / 2, (tokens + 3) / 4};
  }

 private:
  // Zeros and what is not a number are the same however they are cut.
  void require_something_to_compare() const {
    double squares = 0;
    for (const float x : reference_) squares += static_cast<double>(x) * x;
    const bool finite = std::isfinite(reference_loss_) && std::isfinite(squares);
    if (finite && squares > 0) return;
    throw Error(
        ErrorKind::No, "the uncut batch",
        finite ? "has a gradient of zero: no cut could differ from it"
               : "has a loss or a gradient that is not finite: no cut can be compared with it",
        finite ? "" : "The model's weights may be damaged: compare their checksum with the original's");
  }

  // A fresh adapter's B is zero and so is every gradient of its A: that would prove nothing about A.
  void perturb_adapters() {
    const Parameters& parameters = training_.model->parameters;
    for (ParameterId id = 0; id < parameters.all().size(); ++id) {
      if (!parameters.at(id).name.ends_with(".lora_B.weight")) continue;
      std::vector<float> values = training_.model->values(id);
      RandomStream random(training_.job.options.seed, RandomUse::Test, id);
      for (float& x : values) x += static_cast<float>(0.02 * random.normal());
      training_.model->set_values(id, values);
    }
  }

  TrainingJob& training_;
  Stepper& stepper_;
  std::vector<std::uint32_t> window_;
  std::vector<float> reference_;
  double reference_loss_ = 0;
  bool all_same_ = true;
};

}  // namespace

void verify(const run::EngineJob& job, run::WorkerChannel& channel) {
  TrainingJob training(job);
  Stepper stepper(*training.model, training.tokens, job.options);
  channel.send(hello(false, stepper));
  Verification verification(training, stepper);
  Json rows = Json::array();
  const auto check = [&](Cut cut) {
    for (const auto checkpointing : {Checkpointing::None, Checkpointing::Selective, Checkpointing::Full}) {
      if (channel.stop_requested()) throw Error(ErrorKind::Interrupted, "verify", "was asked to stop");
      cut.checkpointing = checkpointing;
      rows.push_back(verification.check(cut));
    }
  };
  const std::int64_t effective = job.options.effective_batch;
  for (std::int64_t micro = effective; micro >= 1; --micro) {
    if (effective % micro != 0) continue;
    channel.send(run::Note{.text = fmt::format("comparing {}x{}", micro, effective / micro),
                           .fraction = 1 - std::log1p(static_cast<double>(micro - 1)) /
                                               std::log1p(static_cast<double>(effective))});
    for (const auto layout : {data::Layout::Packed, data::Layout::Sorted, data::Layout::Arrival}) {
      check({.micro_batch = micro, .layout = layout});
    }
  }
  for (const std::int64_t budget : verification.token_budgets()) {
    check({.micro_batch = 0, .micro_tokens = budget, .layout = data::Layout::Packed});
  }
  channel.send(run::Done{.result = {{"version", 1},
                                    {"tolerance", kTolerance},
                                    {"splits", rows},
                                    {"verdict", verification.all_same() ? "same" : "different"}}});
}

}  // namespace batchwright::engine
