#include "plan/export.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "paths.h"
#include "plan/predictions.h"

namespace batchwright::plan {
namespace {

Plan planned() {
  return plan_of(
      R"({"model": "bert-base-uncased", "effective_batch": 64, "micro_batch": 8, "seq_len": 128, "gpu": "A100",
    "warmup_steps": 500, "base_learning_rate": 2e-5, "base_effective_batch": 32, "checkpointing": "full"})");
}

TEST(Export, EveryFormatCarriesTheSplitAndTheWarmupInOptimizerSteps) {
  for (const std::string_view format : export_formats()) {
    const std::string text = export_settings(planned(), 0, format);
    EXPECT_NE(text.find("500"), std::string::npos) << format;  // not 4000 micro-steps
    EXPECT_EQ(text.find("4000"), std::string::npos) << format;
    EXPECT_NE(text.find("8"), std::string::npos) << format;
  }
}

TEST(Export, TransformersAndDeepspeedAreJsonThatMeansTheSplit) {
  const Json arguments = parse_json(export_settings(planned(), 0, "transformers"), "transformers");
  EXPECT_EQ(arguments["per_device_train_batch_size"], 8);
  EXPECT_EQ(arguments["gradient_accumulation_steps"], 8);
  EXPECT_EQ(arguments["warmup_steps"], 500);
  EXPECT_EQ(arguments["dataloader_drop_last"], true);
  EXPECT_DOUBLE_EQ(arguments["learning_rate"].get<double>(), 4e-5);
  const Json config = parse_json(export_settings(planned(), 0, "deepspeed"), "deepspeed");
  EXPECT_EQ(config["train_batch_size"], 64);
}

TEST(Export, AnUnknownFormatNamesTheNearest) {
  try {
    export_settings(planned(), 0, "deepsped");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.hint().find("deepspeed"), std::string::npos);
  }
}

// TrainingArguments itself reads the exported settings, where Transformers is installed.
TEST(Export, TransformersAcceptsItsArguments) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / "batchwright_export_test.json";
  Plan plan = planned();
  plan.request.compute = ComputeType::Fp32;  // bf16 asks for a GPU
  write_file_atomic(path, export_settings(plan, 0, "transformers"));
  const std::string script =
      "import json, sys\n"
      "try:\n    import transformers, accelerate\nexcept ImportError:\n    print('absent'); sys.exit()\n"
      "a = transformers.TrainingArguments(output_dir='x', use_cpu=True, report_to=[], "
      "**json.load(open(sys.argv[1])))\n"
      "print(a.per_device_train_batch_size * a.gradient_accumulation_steps, a.get_warmup_steps(10000))\n";
  const std::filesystem::path code = path.string() + ".py";
  write_file_atomic(code, script);
  FILE* pipe =
      popen((python_for_tests() + " " + code.string() + " " + path.string() + " 2>/dev/null").c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::array<char, 256> line{};
  const bool read = std::fgets(line.data(), line.size(), pipe) != nullptr;
  pclose(pipe);
  std::filesystem::remove(path);
  std::filesystem::remove(code);
  if (read && std::string(line.data()) == "absent\n") GTEST_SKIP() << "no transformers here";
  EXPECT_EQ(std::string(line.data()), "64 500\n");
}

}  // namespace
}  // namespace batchwright::plan
