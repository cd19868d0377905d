#include "plan/export.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>

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

// What a Python program prints that reads the exported settings from the file it is given; "absent" without
// the tool.
std::string read_by(const std::string& settings, const std::string& tool, const std::string& script) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("batchwright_export_{}_{}", tool, getpid());
  const std::filesystem::path code = path.string() + ".py";
  write_file_atomic(path, settings);
  write_file_atomic(code, fmt::format("import json, sys\ntry:\n    import {}\nexcept ImportError:\n"
                                      "    print('absent')\n    sys.exit()\n{}",
                                      tool, script));
  FILE* pipe =
      popen((python_for_tests() + " " + code.string() + " " + path.string() + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return "";
  std::string text;
  std::array<char, 256> chunk;
  while (std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) text += chunk.data();
  pclose(pipe);
  std::filesystem::remove(path);
  std::filesystem::remove(code);
  return text;
}

Plan without_gpu() {
  Plan plan = planned();
  plan.request.compute = ComputeType::Fp32;  // bf16 asks for a GPU
  return plan;
}

// The tools themselves read what is written for them, where they are installed.
TEST(Export, TransformersAcceptsItsArguments) {
  const std::string answer = read_by(
      export_settings(without_gpu(), 0, "transformers"), "transformers",
      "a = transformers.TrainingArguments(output_dir='x', use_cpu=True, report_to=[], "
      "**json.load(open(sys.argv[1])))\n"
      "print(a.per_device_train_batch_size * a.gradient_accumulation_steps, a.get_warmup_steps(10000))\n");
  if (answer == "absent\n") GTEST_SKIP() << "no transformers here";
  EXPECT_EQ(answer, "64 500\n");
}

TEST(Export, AccelerateReadsItsConfigurationFile) {
  const std::string script =
      "from accelerate.commands.config.config_args import load_config_from_file\n"
      "c = load_config_from_file(sys.argv[1])\n"
      "d = c.deepspeed_config\n"
      "print(c.distributed_type.value, c.num_processes, c.mixed_precision, "
      "c.fsdp_config.get('fsdp_sharding_strategy'), "
      "d.get('zero_stage'), d.get('gradient_accumulation_steps'))\n";
  const char* request =
      R"({"model": "llama-2-7b", "weights": "bf16", "effective_batch": 64, "micro_batch": 2, "seq_len": 512,
      "gpu": "A100", "devices": 8, "sharding": ")";
  const std::pair<const char*, const char*> expected[] = {{"ddp", "MULTI_GPU 8 bf16 None None None\n"},
                                                          {"fsdp", "FSDP 8 bf16 FULL_SHARD None None\n"},
                                                          {"zero3", "DEEPSPEED 8 bf16 None 3 4\n"}};
  for (const auto& [sharding, line] : expected) {
    const Plan plan = plan_of(std::string(request) + sharding + "\"}");
    const std::string answer = read_by(export_settings(plan, 0, "accelerate"), "accelerate", script);
    if (answer == "absent\n") GTEST_SKIP() << "no accelerate here";
    EXPECT_EQ(answer, line);
  }
}

TEST(Export, LightningAcceptsItsTrainer) {
  const std::string answer = read_by(export_settings(without_gpu(), 0, "lightning"), "pytorch_lightning",
                                     "import yaml\ns = yaml.safe_load(open(sys.argv[1]))\n"
                                     "t = pytorch_lightning.Trainer(accelerator='cpu', logger=False, "
                                     "enable_checkpointing=False, **s['trainer'])\n"
                                     "print(t.accumulate_grad_batches * s['dataloader']['batch_size'], "
                                     "t.precision, s['dataloader']['drop_last'])\n");
  if (answer == "absent\n") GTEST_SKIP() << "no pytorch_lightning here";
  EXPECT_EQ(answer, "64 32-true True\n");
}

TEST(Export, DeepspeedAcceptsItsConfiguration) {
  const std::string answer = read_by(export_settings(without_gpu(), 0, "deepspeed"), "deepspeed",
                                     "from deepspeed.runtime.config import DeepSpeedConfig\nc = "
                                     "DeepSpeedConfig(json.load(open(sys.argv[1])))\n"
                                     "print(c.train_batch_size, c.train_micro_batch_size_per_gpu, "
                                     "c.gradient_accumulation_steps, c.scheduler_name)\n");
  if (answer == "absent\n") GTEST_SKIP() << "no deepspeed here";
  EXPECT_NE(answer.find("64 8 8 WarmupLR\n"), std::string::npos) << answer;
}

}  // namespace
}  // namespace batchwright::plan
