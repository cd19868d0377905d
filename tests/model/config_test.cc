#include "model/config.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "paths.h"

namespace batchwright::model {
namespace {

Json minilm() {
  return parse_json(R"({"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 6,
    "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512,
    "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1, "pad_token_id": 0, "x": "kept"})",
                    "test");
}

ErrorKind kind_of(const Json& document, const std::string& expected_word) {
  try {
    model_config_from_json(document, "config.json");
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(expected_word), std::string::npos) << e.what();
    EXPECT_EQ(e.subject(), "config.json");
    return e.kind();
  }
  ADD_FAILURE() << "accepted";
  return ErrorKind::Internal;
}

TEST(ModelConfig, ReadsBertAndKeepsTheDocument) {
  const ModelConfig config = model_config_from_json(minilm(), "config.json");
  EXPECT_EQ(config.architecture, Architecture::Bert);
  EXPECT_EQ(config.hidden, 384);
  EXPECT_EQ(config.layers, 6);
  EXPECT_EQ(config.kv_heads, 12);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.intermediate, 1536);
  EXPECT_EQ(config.type_vocabulary, 2);
  EXPECT_DOUBLE_EQ(config.norm_epsilon, 1e-12);
  EXPECT_DOUBLE_EQ(config.head_dropout(), 0.1);  // no classifier_dropout: BERT falls back to hidden_dropout
  EXPECT_EQ(config.pad_token_id, 0);
  EXPECT_EQ(config.raw["x"], "kept");
}

TEST(ModelConfig, ClassifierDropoutAndLabelsAreRead) {
  Json document = minilm();
  document["classifier_dropout"] = 0.3;
  document["id2label"] = {{"0", "negative"}, {"1", "positive"}};
  const ModelConfig config = model_config_from_json(document, "config.json");
  EXPECT_DOUBLE_EQ(config.head_dropout(), 0.3);
  EXPECT_EQ(config.id2label, (std::vector<std::string>{"negative", "positive"}));
  EXPECT_EQ(config.num_labels, 2);
}

TEST(ModelConfig, RefusesWhatIsMissingOrWrongAndNamesIt) {
  const auto with = [](const char* field, const Json& value) {
    Json document = minilm();
    document[field] = value;
    return document;
  };
  Json without = minilm();
  without.erase("hidden_size");
  EXPECT_EQ(kind_of(without, "hidden_size"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("hidden_size", 0), "hidden_size"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("hidden_size", -384), "hidden_size"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("hidden_size", 385), "divisible"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("hidden_size", "wide"), "hidden_size"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("num_hidden_layers", 1e12), "num_hidden_layers"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("hidden_dropout_prob", 1.5), "hidden_dropout_prob"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("id2label", {{"1", "positive"}}), "label 0"), ErrorKind::InvalidInput);
  EXPECT_EQ(kind_of(with("model_type", "berd"), "Did you mean \"bert\""), ErrorKind::Unsupported);
  EXPECT_EQ(kind_of(with("model_type", "mamba9000x"), "llama"), ErrorKind::Unsupported);
  EXPECT_EQ(kind_of(Json::array(), ""), ErrorKind::InvalidInput);
}

TEST(ModelConfig, FamiliesWriteTheSameThingUnderTheirOwnNames) {
  const ModelConfig gpt2 = model_config_from_json(
      parse_json(R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257,
        "n_positions": 1024, "n_inner": null})",
                 "test"),
      "config.json");
  EXPECT_EQ(gpt2.intermediate, 3072);
  EXPECT_EQ(gpt2.max_positions, 1024);
  EXPECT_TRUE(gpt2.tie_word_embeddings);
  const ModelConfig qwen3 = model_config_from_json(
      parse_json(
          R"({"model_type": "qwen3", "hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151936,
        "max_position_embeddings": 40960, "rope_theta": 1000000, "tie_word_embeddings": true, "rms_norm_eps": 1e-6})",
          "test"),
      "config.json");
  EXPECT_EQ(qwen3.head_dim, 128);  // not hidden / heads
  EXPECT_EQ(qwen3.kv_heads, 8);
  const ModelConfig distil = model_config_from_json(
      parse_json(R"({"model_type": "distilbert", "dim": 768, "n_layers": 6, "n_heads": 12, "hidden_dim": 3072,
        "vocab_size": 30522, "max_position_embeddings": 512, "dropout": 0.1, "seq_classif_dropout": 0.2})",
                 "test"),
      "config.json");
  EXPECT_EQ(distil.intermediate, 3072);
  EXPECT_DOUBLE_EQ(distil.head_dropout(), 0.2);
  EXPECT_EQ(distil.type_vocabulary, 0);
}

TEST(ModelConfig, AnEncoderWithADecoderIsRefusedByName) {
  try {
    model_config_from_json(parse_json(R"({"model_type": "t5"})", "test"), "config.json");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    EXPECT_NE(e.message().find("encoder with a decoder"), std::string::npos);
    EXPECT_NE(e.hint().find("bert"), std::string::npos);
  }
}

// What Gemma 3's configuration class fills in where a file with a vision tower leaves it out.
TEST(ModelConfig, AGemma3ThatSeesIsReadByItsTextModel) {
  const ModelConfig config = model_config_from_json(
      parse_json(R"({"model_type": "gemma3", "vision_config": {}, "text_config": {"hidden_size": 2560,
    "intermediate_size": 10240, "num_hidden_layers": 34}})",
                 "test"),
      "config.json");
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.vocabulary, 262208);
}

TEST(ModelConfig, KeyValueHeadsMustShareEvenly) {
  Json document = parse_json(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "num_key_value_heads": 3, "intermediate_size": 128, "vocab_size": 100})",
                             "test");
  EXPECT_EQ(kind_of(document, "key-value heads"), ErrorKind::InvalidInput);
}

TEST(ReadModelConfig, SaysWhatIsNotThere) {
  EXPECT_THROW(read_model_config("/nonexistent/model"), Error);
  try {
    read_model_config(source_folder() + "/src/model");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::NotFound);
  }
}

}  // namespace
}  // namespace batchwright::model
