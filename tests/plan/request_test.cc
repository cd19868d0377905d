#include "plan/request.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>

#include "base/error.h"
#include "plan/document.h"

namespace batchwright::plan {
namespace {

Json minimal() {
  return parse_json(R"({"model": "gpt2", "effective_batch": 32, "seq_len": 128, "gpu": "T4"})", "test");
}

std::string refusal(const Json& request) {
  try {
    parse_request(request, "request");
  } catch (const Error& e) {
    EXPECT_EQ(exit_code(e.kind()), 2);
    return e.what();
  }
  ADD_FAILURE() << "accepted " << request.dump();
  return "";
}

Json with(const char* key, const Json& value) {
  Json request = minimal();
  request[key] = value;
  return request;
}

TEST(ParseRequest, AssumesWhatIsLeftOpenAndSaysSo) {
  const Request request = parse_request(minimal(), "request");
  EXPECT_EQ(request.method, Method::Full);
  EXPECT_EQ(request.weights, WeightType::Fp32);
  bool says_optimizer = false;
  for (const auto& [key, value] : request.assumed) says_optimizer |= key == "optimizer" && value == "adamw";
  EXPECT_TRUE(says_optimizer);
  EXPECT_EQ(parse_request(with("method", "qlora"), "request").weights, WeightType::Nf4);
  EXPECT_EQ(parse_request(with("devices", 2), "request").sharding, Sharding::Ddp);
}

// What the device and the framework cannot compute in is not assumed.
TEST(ParseRequest, TypesLeftOpenFollowTheDevice) {
  const auto settled = [](Json request, bool cpu, bool has_bf16) {
    Request result = parse_request(request, "request");
    settle_types(result, cpu, has_bf16);
    return std::pair(result.weights, result.compute);
  };
  const Json lora = with("method", "lora");
  EXPECT_EQ(settled(minimal(), false, true), std::pair(WeightType::Fp32, ComputeType::Bf16));
  EXPECT_EQ(settled(minimal(), false, false), std::pair(WeightType::Fp32, ComputeType::Fp16));
  EXPECT_EQ(settled(minimal(), true, true), std::pair(WeightType::Fp32, ComputeType::Fp32));
  EXPECT_EQ(settled(lora, false, true), std::pair(WeightType::Bf16, ComputeType::Bf16));
  EXPECT_EQ(settled(lora, false, false), std::pair(WeightType::Fp16, ComputeType::Fp16));
  EXPECT_EQ(settled(lora, true, false), std::pair(WeightType::Fp32, ComputeType::Fp32));
  EXPECT_EQ(settled(with("framework", "native"), false, true),
            std::pair(WeightType::Fp32, ComputeType::Fp32));
  EXPECT_EQ(settled(with("compute", "bf16"), false, false).second,
            ComputeType::Bf16);  // asked for: warned about
  Json native = with("framework", "native");
  native["compute"] = "bf16";
  EXPECT_NE(refusal(native).find("fp32"), std::string::npos);
  native["compute"] = "fp32";
  native["method"] = "qlora";
  refusal(native);
}

TEST(ParseRequest, PreparationForKbitTrainingIsAssumedWhereItIsUsual) {
  Json request = with("method", "qlora");
  EXPECT_TRUE(parse_request(request, "request").kbit_preparation);
  request["weights"] = "int4";  // GPTQ is left alone by it
  EXPECT_FALSE(parse_request(request, "request").kbit_preparation);
  request["weights"] = "nf4";
  request["framework"] = "litgpt";
  EXPECT_FALSE(parse_request(request, "request").kbit_preparation);
  refusal(with("kbit_preparation", true));
}

TEST(ParseRequest, UnknownKeysAndValuesNameTheNearest) {
  EXPECT_NE(refusal(with("effective_batchs", 3)).find("effective_batch"), std::string::npos);
  EXPECT_NE(refusal(with("method", "lorra")).find("\"lora\""), std::string::npos);
  EXPECT_NE(refusal(with("optimizer", "adamw-8bits")).find("adamw-8bit"), std::string::npos);
  EXPECT_NE(refusal(with("counter", "xyzzy")).find("allocated, reserved, process"), std::string::npos);
}

TEST(ParseRequest, RefusesWhatNoRunCanHave) {
  for (const char* needed : {"model", "effective_batch", "seq_len"}) {
    Json request = minimal();
    request.erase(needed);
    EXPECT_NE(refusal(request).find(needed), std::string::npos);
  }
  refusal(with("effective_batch", 0));
  refusal(with("effective_batch", -8));
  refusal(with("effective_batch", 1.5));
  refusal(with("effective_batch", 1e30));
  refusal(with("micro_batch", 33));
  refusal(with("devices", 33));
  refusal(with("weights", "nf4"));                // full fine-tuning of packed weights
  refusal(with("lengths", Json::array({1, 2})));  // beside seq_len
  refusal(with("headroom", 1.5));
  refusal(with("lr_rule", "cubic"));
  Json lora = with("method", "lora");
  lora["lora_rank"] = 0;
  refusal(lora);
  lora["lora_rank"] = 8;
  lora["lora_targets"] = Json::array();
  refusal(lora);
}

TEST(Lengths, AreReadAsAListOrAsCounts) {
  Json request = minimal();
  request.erase("seq_len");
  request["lengths"] = parse_json("[[10, 3], 40, [10, 1]]", "test");
  const LengthHistogram lengths = parse_request(request, "request").lengths;
  EXPECT_EQ(lengths.longest(), 40);
  EXPECT_DOUBLE_EQ(lengths.mean(), (4 * 10 + 40) / 5.0);
  for (const char* wrong : {"[]", "[0]", "[-1]", "[1.5]", "[[1, 0]]", "[\"a\"]", "{}", "[99999999999]"}) {
    request["lengths"] = parse_json(wrong, "test");
    refusal(request);
  }
}

TEST(Lengths, TheLongestOfADrawGrowsFromTheMeanToTheMaximum) {
  const LengthHistogram lengths{{{10, 90}, {100, 10}}};
  EXPECT_NEAR(lengths.expected_longest(1), lengths.mean(), 1e-9);
  EXPECT_GT(lengths.expected_longest(8), lengths.expected_longest(4));
  EXPECT_NEAR(lengths.expected_longest(1000), 100, 1e-3);
}

// Whatever text comes in, an answer goes out: a plan or an error that names what is wrong, never a fault. The
// same texts every time, and others with --gtest_shuffle --gtest_repeat=N.
TEST(AnswerLine, SurvivesMutatedRequests) {
  const std::string seeds[] = {
      R"({"model": "llama-3.1-8b", "method": "qlora", "lora_rank": 16, "effective_batch": 64, "seq_len": 2048, "gpu": "A100"})",
      R"({"model": "bert-base-uncased", "task": "token-classification", "effective_batch": 32, "lengths": [[12, 3], [512, 1]], "gpu": "T4", "devices": 2, "sharding": "zero2"})",
      R"({"model": "gpt2", "effective_batch": 100, "micro_batch": 8, "seq_len": 1024, "gpu": {"memory_gib": 8, "bandwidth_gb_per_s": 100, "bf16_tflops": 3}, "offload": "all"})",
      R"({"model": "minilm-l6", "framework": "native", "method": "lora", "effective_batch": 32, "seq_len": 128, "gpu": "cpu"})"};
  std::mt19937 random(1 + static_cast<unsigned>(testing::UnitTest::GetInstance()->random_seed()));
  Planner planner;
  for (int i = 0; i < 2000; ++i) {
    std::string text = seeds[random() % std::size(seeds)];
    for (unsigned edits = random() % 4; edits-- > 0;) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 5);
          break;
        case 2:
          text.insert(at, std::string(1 + random() % 3, "0123456789-{}[],:\"eE."[random() % 21]));
          break;
        default:
          text = text.substr(0, at) + text.substr(at / 2);
      }
      if (text.empty()) text = " ";
    }
    bool failed = false;
    const std::string answer = answer_line(planner, text, 1, failed);
    const Json document = parse_json(answer, "answer");
    EXPECT_EQ(document.contains("error"), failed) << text;
    if (failed) {
      EXPECT_NE(document["error"]["kind"], "internal") << text << answer;
    }
  }
}

}  // namespace
}  // namespace batchwright::plan
