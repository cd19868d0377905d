// What batchwright-engine's counter showed for small random decoders on two threads, every exact split of 8
// examples of 64 tokens (`batchwright tune --layout packed --packing off`): plan counts the same arenas.
#include "plan/native_memory.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/json.h"
#include "model/config.h"
#include "paths.h"

namespace batchwright::plan {
namespace {

TEST(NativeMemory, CountsWhatTheEngineTookForDecoders) {
  hardware::Device device;
  device.architecture = "CPU";
  device.multiprocessors = 2;
  std::ifstream file(source_folder() + "/tests/cases/plan/native_decoders.jsonl");
  std::string line;
  int splits = 0;
  while (std::getline(file, line)) {
    const Json row = parse_json(line, "native_decoders.jsonl");
    const Request request = parse_request(row["request"], "test");
    const auto config = model::read_model_config(source_folder() + "/" + request.model);
    const auto targets = request.trains_all() ? std::vector<std::string>{} : request.lora_targets;
    const ModelShape shape = shape_of(config, request.task, targets, {});
    ASSERT_TRUE(counts_natively(shape));
    for (const Json& peak : row["peaks"]) {
      const auto micro_batch = peak[0].get<std::int64_t>();
      const NativeMemory memory =
          native_memory(shape, request, device, {micro_batch, request.effective_batch / micro_batch, 1});
      const double counted = memory.weights + memory.adapters + memory.gradients + memory.optimizer_state +
                             memory.kept + memory.temporary;
      EXPECT_NEAR(counted / peak[1].get<double>(), 1, 1e-3) << micro_batch << " of " << line;
      ++splits;
    }
  }
  EXPECT_GE(splits, 140);
}

}  // namespace
}  // namespace batchwright::plan
