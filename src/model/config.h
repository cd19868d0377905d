#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/architecture.h"

namespace batchwright::model {

// A Transformer's shape: config.json in Hugging Face layout with one name a field, whatever the family calls
// it, every value checked. Counts are elements, rates are fractions in [0, 1].
struct ModelConfig {
  Architecture architecture = Architecture::Bert;
  std::string model_type;

  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;      // < heads: grouped-query attention; 1: multi-query
  std::int64_t head_dim = 0;      // hidden / heads unless the family sets its own (Qwen3, Gemma)
  std::int64_t intermediate = 0;  // width of the MLP (of one of its two halves when it is gated)
  std::int64_t vocabulary = 0;
  std::int64_t max_positions = 0;
  std::int64_t type_vocabulary = 0;  // 0: no token-type embedding
  std::int64_t embedding = 0;  // width of the word embedding; differs from hidden in ELECTRA and OPT-350m
  bool shares_blocks = false;  // one block's weights serve every layer (ALBERT)
  std::int64_t experts = 0;    // 0: a dense MLP
  std::int64_t experts_per_token = 0;

  double norm_epsilon = 1e-12;
  std::string activation;  // as written: "gelu", "gelu_new", "silu", ...
  double hidden_dropout = 0;
  double attention_dropout = 0;
  std::optional<double> classifier_dropout;  // see head_dropout()
  double initializer_range = 0.02;
  bool tie_word_embeddings = true;
  bool attention_bias = false;  // biases of the query, key and value projections
  bool mlp_bias = false;
  bool parallel_residual = false;  // attention and MLP read the same normalised input (Falcon, Phi, GPT-NeoX)

  std::optional<double> rope_theta;
  std::optional<Json> rope_scaling;
  std::optional<std::int64_t> sliding_window;
  std::optional<std::int64_t> pad_token_id;

  std::vector<std::string> id2label;       // in the order of the label ids; empty when the file has none
  std::optional<std::int64_t> num_labels;  // as written, or the size of id2label

  Json raw;  // the document as read, so that a saved model keeps what this struct does not know

  // The position embedding of a sequence's first token: RoBERTa counts from behind its padding id.
  std::int64_t first_position() const {
    return architecture == Architecture::Roberta ? pad_token_id.value_or(1) + 1 : 0;
  }
  // The token whose word embedding gets no gradient from the body (torch's Embedding(padding_idx), where -1
  // counts from the end); -1 where there is none. GPT-2 does not use it.
  std::int64_t embedding_padding_id() const {
    if (architecture == Architecture::Gpt2) return -1;
    if (!pad_token_id.has_value())
      return is_encoder(architecture) ? std::max<std::int64_t>(first_position() - 1, 0) : -1;
    return *pad_token_id >= 0 ? *pad_token_id : vocabulary + *pad_token_id;
  }
  // The longest sequence that has positions.
  std::int64_t longest_sequence() const { return max_positions - first_position(); }

  // Dropout before a classification head: classifier_dropout, or hidden_dropout as BERT does; DistilBERT has
  // its own rate.
  double head_dropout() const {
    return classifier_dropout.value_or(architecture == Architecture::DistilBert ? 0.2 : hidden_dropout);
  }
};

// Reads config.json (or the folder that holds it). Throws NotFound; InvalidInput naming the field that is
// missing, of a wrong type or out of range; Unsupported naming the model types that are known.
ModelConfig read_model_config(const std::filesystem::path& folder_or_config_json);

// The same from a parsed document; `subject` names its source in errors.
ModelConfig model_config_from_json(const Json& document, const std::string& subject);

}  // namespace batchwright::model
