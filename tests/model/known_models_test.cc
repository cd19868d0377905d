#include "model/known_models.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/error.h"
#include "model/parameters.h"

namespace batchwright::model {
namespace {

std::int64_t parameters_of(std::string_view name) {
  const ModelConfig config = find_model(name);
  return count_parameters(config, is_encoder(config.architecture) ? Head::None : Head::CausalLm).total();
}

// Parameter counts as the models' cards publish them; a mistaken shape cannot meet them.
TEST(KnownModels, HaveThePublishedNumberOfParameters) {
  EXPECT_EQ(parameters_of("bert-base-uncased"), 109482240);
  EXPECT_EQ(parameters_of("bert-large-uncased"), 335141888);
  EXPECT_EQ(parameters_of("roberta-base"), 124645632);
  EXPECT_EQ(parameters_of("distilbert-base-uncased"), 66362880);
  EXPECT_EQ(parameters_of("gpt2"), 124439808);
  EXPECT_EQ(parameters_of("gpt2-xl"), 1557611200);
  EXPECT_EQ(parameters_of("opt-125m"), 125239296);
  EXPECT_EQ(parameters_of("opt-350m"), 331196416);
  EXPECT_EQ(parameters_of("bloom-560m"), 559214592);
  EXPECT_EQ(parameters_of("pythia-160m"), 162322944);
  EXPECT_EQ(parameters_of("llama-2-7b"), 6738415616);
  EXPECT_EQ(parameters_of("llama-3.1-8b"), 8030261248);
  EXPECT_EQ(parameters_of("llama-3.2-1b"), 1235814400);
  EXPECT_EQ(parameters_of("llama-3.1-70b"), 70553706496);
  EXPECT_EQ(parameters_of("mistral-7b"), 7241732096);
  EXPECT_EQ(parameters_of("mixtral-8x7b"), 46702792704);
  EXPECT_EQ(parameters_of("qwen-7b"), 7721324544);
  EXPECT_EQ(parameters_of("qwen2.5-0.5b"), 494032768);
  EXPECT_EQ(parameters_of("qwen2.5-7b"), 7615616512);
  EXPECT_EQ(parameters_of("qwen3-0.6b"), 596049920);
  EXPECT_EQ(parameters_of("qwen3-1.7b"), 1720574976);
  EXPECT_EQ(parameters_of("qwen3-8b"), 8190735360);
  EXPECT_EQ(parameters_of("gemma-2b"), 2506172416);
  EXPECT_EQ(parameters_of("gemma-2-9b"), 9241705984);
  EXPECT_EQ(parameters_of("phi-2"), 2779683840);
  EXPECT_EQ(parameters_of("phi-3-mini"), 3821079552);
  EXPECT_EQ(parameters_of("falcon-7b"), 6921720704);
  EXPECT_EQ(parameters_of("stablelm-3b-4e1t"), 2795443200);
  EXPECT_EQ(parameters_of("yi-6b"), 6061035520);
  EXPECT_EQ(parameters_of("baichuan2-7b"), 7505973248);
  EXPECT_EQ(parameters_of("chatglm3-6b"), 6243584000);
  EXPECT_EQ(parameters_of("gemma-3-1b"), 999885952);
  EXPECT_EQ(parameters_of("qwen3-30b-a3b"), 30532122624);
  EXPECT_EQ(parameters_of("starcoder2-3b"), 3030371328);
  EXPECT_EQ(parameters_of("smollm3-3b"), 3075098624);
  EXPECT_EQ(parameters_of("olmo-2-7b"), 7298617344);
}

// With the heads that Transformers 4.57 puts on them: its models, built without data, hold as many.
TEST(KnownModels, EncodersHaveTheirHeads) {
  const auto with_head = [](std::string_view name, Head head) {
    return count_parameters(find_model(name), head).total();
  };
  EXPECT_EQ(with_head("modernbert-base", Head::SequenceClassification), 149606402);
  EXPECT_EQ(with_head("modernbert-large", Head::TokenClassification), 395833346);
  EXPECT_EQ(with_head("deberta-v3-base", Head::SequenceClassification), 184423682);
  EXPECT_EQ(with_head("deberta-v3-small", Head::TokenClassification), 141305858);
  EXPECT_EQ(with_head("albert-base-v2", Head::SequenceClassification), 11685122);
  EXPECT_EQ(with_head("albert-xxlarge-v2", Head::TokenClassification), 205822466);
}

TEST(KnownModels, EveryLineReadsAndNamesAreUnique) {
  std::set<std::string_view> seen;
  for (const std::string_view name : known_model_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    EXPECT_GT(parameters_of(name), 0) << name;
  }
  EXPECT_GT(seen.size(), 100u);
}

TEST(KnownModels, AreFoundByHubNameAndWhateverTheCase) {
  EXPECT_EQ(find_model("meta-llama/Llama-3.1-8B").layers, 32);
  EXPECT_EQ(find_model("QWEN3-1.7B").layers, 28);
}

TEST(KnownModels, ANameThatIsNotThereNamesTheNearest) {
  try {
    find_model("llama-3.1-8bb");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_NE(e.hint().find("llama-3.1-8b"), std::string::npos);
  }
  EXPECT_THROW(find_model(""), Error);
  EXPECT_THROW(find_model("/nonexistent"), Error);
}

}  // namespace
}  // namespace batchwright::model
