// What the modules of Transformers 4.57 and PEFT allocate in one forward and backward pass, against the
// model's counting. The cases were recorded by bench/plan/record_allocations.py: the real modules on tensors
// without data, every storage counted from its creation to its release.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>

#include "base/json.h"
#include "paths.h"
#include "plan/memory.h"
#include "plan/shape.h"

namespace batchwright::plan {
namespace {

TEST(Allocations, AgreeWithWhatTransformersAllocates) {
  std::ifstream file(source_folder() + "/tests/cases/plan/allocations.jsonl");
  const hardware::Device& device = hardware::find_device("A100");
  std::string line;
  int cases = 0, close = 0;
  while (std::getline(file, line)) {
    const Json document = parse_json(line, "allocations.jsonl");
    Json text = document["request"];
    text["model"] = "recorded";
    Request request = parse_request(text, "request");
    const model::ModelConfig config = model::model_config_from_json(document["config"], "config");
    if (!request.task_given) request.task = default_task(config);
    std::vector<std::string> targets;
    if (!request.trains_all()) targets = request.lora_targets;
    const ModelShape shape = shape_of(config, request.task, targets, {});
    const MemoryPrediction prediction =
        MemoryModel(shape, request, device).predict({request.effective_batch, 1, 1});
    const double workspace = 2 * 8.1 * 1048576.0;  // cuBLAS's, which the recording has no use for
    const double ratio = (prediction.allocated - workspace) / document["peak_bytes"].get<double>();
    const std::string name = document["case"].get<std::string>();
    // The recording's attention keeps its inputs as they come; under autocast a GPU's kernels take 16-bit
    // copies.
    const bool autocast = name.find("amp") != std::string::npos;
    EXPECT_NEAR(ratio, 1, autocast ? 0.12 : 0.08) << name;
    ++cases;
    close += std::abs(ratio - 1) < 0.03 ? 1 : 0;
  }
  EXPECT_GE(cases, 80);
  EXPECT_GE(close, cases * 3 / 4);
}

}  // namespace
}  // namespace batchwright::plan
