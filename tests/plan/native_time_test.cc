#include "plan/native_time.h"

#include <gtest/gtest.h>

#include "model/known_models.h"

namespace batchwright::plan {
namespace {

// Two threads of 10 GFLOP/s each, whatever the rows; memory and calls cost nothing.
hardware::Device two_threads() {
  hardware::Device device;
  device.architecture = "CPU";
  device.multiprocessors = 2;
  device.fp32_flops = 20e9;
  device.rates_by_rows = {{1, 20e9}};
  device.bandwidth_bytes_per_second = 1e18;
  return device;
}

TimeParts step_of(const std::string& rest, const Split& split) {
  const std::string text = R"({"model": "minilm-l6", "task": "sequence-classification", "framework": "native",
    "gpu": "cpu", "effective_batch": 32, "seq_len": 128)" +
                           rest + "}";
  const Request request = parse_request(parse_json(text, "test"), "test");
  const model::ModelConfig config = model::find_model(request.model);
  const std::vector<std::string> targets =
      request.trains_all() ? std::vector<std::string>{} : request.lora_targets;
  return native_time(shape_of(config, request.task, targets, {}), request, two_threads(), split);
}

TEST(NativeTime, CountsTheProductsOfFullTrainingByHand) {
  const double h = 384, rows = 32 * 128, examples = 32;
  // Five whole layers; of the sixth keys and values of all rows, and ten hidden x hidden for one row an
  // example.
  const double blocks = rows * (5 * 12 + 2) * h * h + examples * 10 * h * h;
  const double ends = examples * (h * h + 2 * h);  // pooler and a head of two labels
  const double flops = 3 * 2 * (blocks + ends);
  const double seconds = flops / 20e9;
  EXPECT_NEAR(step_of(R"(, "method": "full")", {32, 1, 1}).products, seconds, 1e-3 * seconds);
}

TEST(NativeTime, FrozenWeightsTakeNoGradientAndTheFirstLayerNoneForItsInput) {
  const double h = 384, rows = 32 * 128, examples = 32, rank = 4;
  const double forward = rows * (5 * 12 + 2) * h * h + examples * 10 * h * h;
  const double backward = forward - rows * 3 * h * h;
  const double ends = 2 * examples * (h * h + 2 * h);
  const double thin = 3 * rank * (rows * (5 * (4 * 2 + 2 * 5) + 2 * 2) + examples * (2 * 2 + 2 * 5)) * h;
  const double seconds = 2 * (forward + backward + ends + thin / 0.4) / 20e9;
  EXPECT_NEAR(step_of(R"(, "method": "lora", "lora_rank": 4)", {32, 1, 1}).products, seconds, 1e-3 * seconds);
}

TEST(NativeTime, MicroBatchesBelowTheThreadsRunSideBySide) {
  const double pair = step_of(R"(, "method": "lora")", {2, 16, 1}).total();
  EXPECT_NEAR(step_of(R"(, "method": "lora")", {1, 32, 1}).total(), pair, 0.02 * pair);
  // Three examples on two threads: the longer share decides.
  const double three = step_of(R"(, "method": "lora")", {3, 1, 1}).products;
  EXPECT_NEAR(three, step_of(R"(, "method": "lora")", {4, 1, 1}).products, 1e-9);
}

}  // namespace
}  // namespace batchwright::plan
