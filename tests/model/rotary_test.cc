#include "model/rotary.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace batchwright::model {
namespace {

ModelConfig config_with(const std::string& more, const std::string& model_type = "llama") {
  return model_config_from_json(
      parse_json(R"({"model_type": ")" + model_type +
                     R"(", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
        "intermediate_size": 8, "vocab_size": 8, "max_position_embeddings": 8192, "rope_theta": 500000.0)" +
                     more + "}",
                 "test"),
      "config.json");
}

// What Transformers 4.57's ROPE_INIT_FUNCTIONS give for the same settings.
TEST(Rotary, FrequenciesAreThoseOfTransformers) {
  struct Case {
    std::string scaling;
    std::vector<float> frequencies;
    double scale;
  };
  const std::vector<Case> cases = {
      {"",
       {1, 0.193922758f, 0.0376060307f, 0.00729266508f, 0.00141421345f, 0.000274248188f, 5.31829573e-05f,
        1.03133852e-05f},
       1},
      {R"(, "rope_scaling": {"type": "linear", "factor": 4})",
       {0.25f, 0.0484806895f, 0.00940150768f, 0.00182316627f, 0.000353553361f, 6.8562047e-05f,
        1.32957393e-05f, 2.57834631e-06f},
       1},
      {R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
           "original_max_position_embeddings": 8192})",
       {1, 0.193922758f, 0.0376060307f, 0.00729266508f, 0.000524846022f, 3.42810235e-05f, 6.64786967e-06f,
        1.28917316e-06f},
       1},
      {R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 2048})",
       {1, 0.193922758f, 0.0282045230f, 0.00364633230f, 0.000353553361f, 6.8562047e-05f, 1.32957393e-05f,
        2.57834631e-06f},
       1.138629436111989}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.scaling);
    const Rotary rotary = rotary_of(config_with(c.scaling));
    ASSERT_EQ(rotary.frequencies.size(), c.frequencies.size());
    for (std::size_t i = 0; i < c.frequencies.size(); ++i) {
      EXPECT_NEAR(rotary.frequencies[i] / c.frequencies[i], 1, 1e-6) << i;
    }
    EXPECT_NEAR(rotary.scale, c.scale, 1e-12);
  }
}

TEST(Rotary, SenselessScalingIsRefused) {
  for (const char* scaling :
       {R"({"rope_type": "longrope", "factor": 4})", R"({"rope_type": "linear"})",
        R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 1,
                                  "original_max_position_embeddings": 8192})"}) {
    EXPECT_THROW(rotary_of(config_with(std::string(R"(, "rope_scaling": )") + scaling)), Error) << scaling;
  }
}

TEST(AttentionWindow, SlidesWhereTheFamilySaysSo) {
  EXPECT_EQ(attention_window(config_with(R"(, "sliding_window": 9)"), 0), 0);  // Llama has none
  EXPECT_EQ(attention_window(config_with("", "mistral"), 0), 4096);
  EXPECT_EQ(attention_window(config_with(R"(, "sliding_window": null)", "mistral"), 0), 0);
  EXPECT_EQ(attention_window(config_with(R"(, "sliding_window": 9)", "mistral"), 3), 9);
  const std::string sliding = R"(, "sliding_window": 9, "max_window_layers": 2)";
  EXPECT_EQ(attention_window(config_with(sliding, "qwen2"), 3), 0);  // not asked for
  const ModelConfig asked = config_with(sliding + R"(, "use_sliding_window": true)", "qwen2");
  EXPECT_EQ(attention_window(asked, 1), 0);
  EXPECT_EQ(attention_window(asked, 2), 9);
  const ModelConfig listed = config_with(
      sliding + R"(, "use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention",
                "full_attention", "full_attention"])",
      "qwen3");
  EXPECT_EQ(attention_window(listed, 0), 9);
  EXPECT_EQ(attention_window(listed, 3), 0);
}

}  // namespace
}  // namespace batchwright::model
