// The invariant that makes everything else legal: with dropout on, the gradient does not depend on the cut.

#include <gtest/gtest.h>

#include "engine/small_model.h"

namespace batchwright::engine::test {
namespace {

class Invariance : public ::testing::TestWithParam<std::tuple<const char*, run::Method>> {
 protected:
  run::Method method() const { return std::get<1>(GetParam()); }
  const SmallModel small{std::get<0>(GetParam())};
};

TEST_P(Invariance, EverySplitLayoutAndThreadCountGivesTheSameGradient) {
  run::TrainingOptions options = small.options(method());
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  options.threads = 1;
  Stepper whole(*model, tokens, options);
  double expected_loss = 0;
  const auto expected = gradient_of(whole, small.rows(), {.micro_batch = SmallModel::kRows}, &expected_loss);
  for (const int threads : {1, 2, 3}) {
    options.threads = threads;
    Stepper stepper(*model, tokens, options);
    for (const auto layout : {data::Layout::Packed, data::Layout::Sorted, data::Layout::Arrival}) {
      for (const std::int64_t micro : {24, 12, 8, 5, 3, 2, 1}) {
        double loss = 0;
        const auto gradient =
            gradient_of(stepper, small.rows(), {.micro_batch = micro, .layout = layout}, &loss);
        std::string worst;
        EXPECT_LT(worst_difference(model->parameters, gradient, expected, &worst), 1e-5)
            << "micro-batch " << micro << ", " << data::layout_name(layout) << ", " << threads
            << " threads: " << worst;
        EXPECT_NEAR(loss, expected_loss, 1e-6);
      }
    }
    for (const auto checkpointing : {Checkpointing::Selective, Checkpointing::Full}) {
      const auto gradient =
          gradient_of(stepper, small.rows(), {.micro_batch = 6, .checkpointing = checkpointing});
      EXPECT_LT(worst_difference(model->parameters, gradient, expected), 1e-5)
          << checkpointing_name(checkpointing);
    }
    for (const std::int64_t micro_tokens : {16, 64, 1000}) {
      const auto gradient =
          gradient_of(stepper, small.rows(), {.micro_batch = 0, .micro_tokens = micro_tokens});
      EXPECT_LT(worst_difference(model->parameters, gradient, expected), 1e-5) << micro_tokens << " tokens";
    }
  }
}

// Dropout must really be on in the test above: another step's masks give another gradient.
TEST_P(Invariance, DropoutDependsOnTheStep) {
  const run::TrainingOptions options = small.options(method());
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  Stepper stepper(*model, tokens, options);
  const auto first = gradient_of(stepper, small.rows(), {.micro_batch = 8});
  stepper.accumulate(small.rows(), {.micro_batch = 8}, 8);
  EXPECT_GT(worst_difference(model->parameters, stepper.sum_gradients(), first), 0.1);
}

// Finite differences of the loss along random directions agree with the gradient, dropout on.
TEST_P(Invariance, GradientIsTheSlopeOfTheLoss) {
  const run::TrainingOptions options = small.options(method());
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  Stepper stepper(*model, tokens, options);
  const Cut cut{.micro_batch = 8};
  const auto gradient = gradient_of(stepper, small.rows(), cut);
  float* values = model->parameters.trainable_values();
  for (const Parameter& p : model->parameters.all()) {
    if (!p.trainable) continue;
    // The direction of the tensor's own gradient has the steepest slope, so the difference drowns least in
    // rounding.
    double squares = 0;
    for (std::int64_t i = p.offset; i < p.offset + p.count; ++i)
      squares += std::pow(gradient[static_cast<std::size_t>(i)], 2);
    const double norm = std::sqrt(squares);
    if (norm < 2e-3) continue;  // BERT's key biases: exactly zero in theory
    const std::vector<float> saved(values + p.offset, values + p.offset + p.count);
    const double step = 4e-3 / norm;
    const auto loss_at = [&](double t) {
      for (std::int64_t i = 0; i < p.count; ++i) {
        values[p.offset + i] = saved[static_cast<std::size_t>(i)] +
                               static_cast<float>(t * gradient[static_cast<std::size_t>(p.offset + i)]);
      }
      return stepper.accumulate(small.rows(), cut, 7).loss;
    };
    const double slope = (loss_at(step / norm) - loss_at(-step / norm)) / (2 * step / norm);
    std::copy(saved.begin(), saved.end(), values + p.offset);
    EXPECT_NEAR(slope / squares, 1.0, 0.05) << p.name;
  }
}

// The kernels against the same mathematics in ATen calls, dropout on: gradients, then weights after a few
// steps.
TEST_P(Invariance, TorchOpsAgreeWithTheKernels) {
  run::TrainingOptions options = small.options(method());
  options.weight_decay = 0.1;
  const auto tokens = small.tokens();
  const auto model = small.load(options);
  options.device = "torch-cpu";
  const auto reference = small.load(options);
  Stepper stepper(*model, tokens, options), reference_stepper(*reference, tokens, options);
  const Cut cut{.micro_batch = 8}, padded{.micro_batch = 12, .layout = data::Layout::Arrival};
  const auto gradient = gradient_of(stepper, small.rows(), cut);
  std::string worst;
  EXPECT_LT(worst_difference(model->parameters, gradient,
                             gradient_of(reference_stepper, small.rows(), padded), &worst),
            1e-5)
      << worst;
  for (int step = 0; step < 3; ++step) {
    const auto a = stepper.step(small.rows(), cut, step, 1e-3);
    const auto b = reference_stepper.step(small.rows(), padded, step, 1e-3);
    EXPECT_NEAR(a.loss, b.loss, 1e-5);
    EXPECT_NEAR(a.grad_norm / b.grad_norm, 1, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Invariance,
                         ::testing::Combine(::testing::Values("bert", "gpt2", "qwen3"),
                                            ::testing::Values(run::Method::Full, run::Method::Lora)),
                         [](const auto& one) {
                           const bool full = std::get<1>(one.param) == run::Method::Full;
                           return std::string(std::get<0>(one.param)) + (full ? "Full" : "Lora");
                         });

}  // namespace
}  // namespace batchwright::engine::test
