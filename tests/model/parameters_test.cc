#include "model/parameters.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace batchwright::model {
namespace {

ModelConfig bert_base() {
  return model_config_from_json(
      parse_json(
          R"({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2})",
          "test"),
      "config.json");
}

TEST(CountParameters, BertBaseIsThePublishedSize) {
  const ParameterCounts bare = count_parameters(bert_base(), Head::None);
  EXPECT_EQ(bare.total(), 109482240);  // BertModel of bert-base-uncased, pooler included
  EXPECT_EQ(bare.pooler, 768 * 768 + 768);
  const ParameterCounts classifier = count_parameters(bert_base(), Head::SequenceClassification, 2);
  EXPECT_EQ(classifier.total(), 109482240 + 2 * 768 + 2);
  EXPECT_EQ(classifier.head, 2 * 768 + 2);
  // Token classification is built without the pooler.
  EXPECT_EQ(count_parameters(bert_base(), Head::TokenClassification, 9).total(),
            109482240 - bare.pooler + 9 * 768 + 9);
}

TEST(ListTensors, NamesAreHuggingFacesWithAndWithoutTheHead) {
  const auto bare = list_tensors(bert_base(), Head::None);
  EXPECT_EQ(bare.front().name, "embeddings.word_embeddings.weight");
  EXPECT_EQ(bare.front().shape, (std::vector<std::int64_t>{30522, 768}));
  EXPECT_EQ(bare.back().name, "pooler.dense.bias");
  const auto whole = list_tensors(bert_base(), Head::SequenceClassification, 3);
  EXPECT_EQ(whole.front().name, "bert.embeddings.word_embeddings.weight");
  EXPECT_EQ(whole.back().name, "classifier.bias");
  EXPECT_EQ(whole.size(), bare.size() + 2);
  std::int64_t sum = 0;
  for (const TensorShape& tensor : whole) sum += tensor.elements();
  EXPECT_EQ(sum, count_parameters(bert_base(), Head::SequenceClassification, 3).total());
}

TEST(LoraModules, AllLinearIsEveryLinearLayerButTheHead) {
  const auto modules = list_modules(bert_base(), Head::SequenceClassification, 2);
  const auto all = lora_modules(modules, {"all-linear"});
  EXPECT_EQ(all.size(), 12u * 6 + 1);  // six a layer, and the pooler
  EXPECT_EQ(lora_parameters(all, 16), 16 * (12 * (4 * (768 + 768) + 2 * (768 + 3072)) + 768 + 768));
  // The names that the common recipes use match by suffix, as PEFT matches: the same modules for BERT.
  EXPECT_EQ(lora_modules(modules, {"query", "key", "value", "dense"}).size(), all.size());
  EXPECT_EQ(lora_modules(modules, {"attention.output.dense"}).size(), 12u);
}

TEST(LoraModules, ATargetThatMatchesNothingIsAnErrorWithTheNearestName) {
  const auto modules = list_modules(bert_base(), Head::SequenceClassification, 2);
  try {
    lora_modules(modules, {"query", "vlue"});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Usage);
    EXPECT_NE(std::string(e.what()).find("\"value\""), std::string::npos) << e.what();
  }
  EXPECT_THROW(lora_modules(modules, {"nse"}), Error);  // part of a word is no suffix
}

}  // namespace
}  // namespace batchwright::model
