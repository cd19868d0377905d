#include "model/config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "model/config_keys.h"

namespace batchwright::model {
namespace {

// Wider than any model that exists, narrow enough that no product of three of them overflows.
constexpr std::int64_t kMaxWidth = 1 << 20, kMaxLayers = 10000, kMaxVocabulary = 1 << 24,
                       kMaxPositions = 1ll << 32;

[[noreturn]] void fail(const std::string& subject, const std::string& message) {
  throw Error(ErrorKind::InvalidInput, subject, message);
}

void read_sizes(const JsonFields& fields, const ConfigKeys& keys, ModelConfig& config) {
  // A Gemma 3 with a vision tower leaves out what its configuration class gives its text model.
  const bool gemma3 = config.architecture == Architecture::Gemma3;
  config.layers =
      gemma3 ? fields.integer(keys.layers, 1, kMaxLayers, 26) : fields.integer(keys.layers, 1, kMaxLayers);
  config.hidden =
      gemma3 ? fields.integer(keys.hidden, 1, kMaxWidth, 2304) : fields.integer(keys.hidden, 1, kMaxWidth);
  config.heads =
      gemma3 ? fields.integer(keys.heads, 1, kMaxWidth, 8) : fields.integer(keys.heads, 1, kMaxWidth);
  config.vocabulary = gemma3 ? fields.integer(keys.vocabulary, 1, kMaxVocabulary, 262208)
                             : fields.integer(keys.vocabulary, 1, kMaxVocabulary);
  config.max_positions = fields.integer(keys.positions, 1, kMaxPositions, keys.default_positions);
  config.type_vocabulary = keys.has_token_types ? fields.integer("type_vocab_size", 0, 1024, 2) : 0;
}

void read_intermediate(const JsonFields& fields, const ConfigKeys& keys, ModelConfig& config) {
  switch (config.architecture) {
    case Architecture::Mpt:
      config.intermediate = config.hidden * fields.integer("expansion_ratio", 1, 64, 4);
      break;
    case Architecture::Bloom:
      config.intermediate = fields.integer("n_inner", 1, kMaxWidth, 4 * config.hidden);
      break;
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
    case Architecture::Falcon:
    case Architecture::Phi:
      config.intermediate = fields.integer(keys.intermediate, 1, 4 * kMaxWidth, 4 * config.hidden);
      break;
    case Architecture::Qwen3Moe:
      config.intermediate = fields.integer("moe_intermediate_size", 1, 4 * kMaxWidth);
      break;
    case Architecture::Qwen:  // counts both halves of the gated MLP
      config.intermediate = fields.integer(keys.intermediate, 2, 4 * kMaxWidth) / 2;
      break;
    default:
      config.intermediate = fields.integer(keys.intermediate, 1, 4 * kMaxWidth);
  }
}

std::int64_t read_kv_heads(const JsonFields& fields, const ModelConfig& config) {
  switch (config.architecture) {
    case Architecture::GptBigCode:
      return fields.boolean("multi_query", true) ? 1 : config.heads;
    case Architecture::Falcon:
      if (fields.boolean("new_decoder_architecture", false))
        return fields.integer("num_kv_heads", 1, kMaxWidth, config.heads);
      return fields.boolean("multi_query", true) ? 1 : config.heads;
    case Architecture::ChatGlm:
      return fields.boolean("multi_query_attention", false)
                 ? fields.integer("multi_query_group_num", 1, kMaxWidth, 1)
                 : config.heads;
    case Architecture::Gemma3:
      return fields.integer("num_key_value_heads", 1, kMaxWidth, 4);
    default:
      return fields.integer("num_key_value_heads", 1, kMaxWidth, config.heads);
  }
}

void read_heads(const JsonFields& fields, ModelConfig& config, const std::string& subject) {
  config.kv_heads = read_kv_heads(fields, config);
  if (config.heads % config.kv_heads != 0) {
    fail(subject, fmt::format("{} attention heads cannot share {} key-value heads evenly", config.heads,
                              config.kv_heads));
  }
  const auto given = config.architecture == Architecture::ChatGlm
                         ? fields.maybe_integer("kv_channels", 1, kMaxWidth)
                         : fields.maybe_integer("head_dim", 1, kMaxWidth);
  if (given) {
    config.head_dim = *given;
    return;
  }
  if (config.architecture == Architecture::Gemma3) {
    config.head_dim = 256;
    return;
  }
  if (config.hidden % config.heads != 0) {
    fail(subject, fmt::format("the hidden size {} is not divisible by its {} attention heads", config.hidden,
                              config.heads));
  }
  config.head_dim = config.hidden / config.heads;
}

void read_rates(const JsonFields& fields, const ConfigKeys& keys, ModelConfig& config) {
  config.norm_epsilon = fields.number(keys.norm_epsilon, 0, 1, keys.default_norm_epsilon);
  config.hidden_dropout = fields.number(keys.hidden_dropout, 0, 1, keys.default_dropout);
  config.attention_dropout = fields.number(keys.attention_dropout, 0, 1, keys.default_dropout);
  config.classifier_dropout = fields.maybe_number(keys.classifier_dropout, 0, 1);
  config.initializer_range = fields.number("initializer_range", 0, 10, 0.02);
  config.activation = fields.text(keys.activation, std::string(keys.default_activation));
}

// config.json writes {"0": "negative", "1": "positive"}: every id from 0 up must be there.
void read_labels(const JsonFields& fields, ModelConfig& config, const std::string& subject) {
  config.num_labels = fields.maybe_integer("num_labels", 1, 1 << 20);
  const Json* labels = fields.find("id2label");
  if (labels == nullptr) return;
  if (!labels->is_object()) fail(subject, "field \"id2label\" must map ids to names");
  for (std::size_t id = 0; id < labels->size(); ++id) {
    const auto found = labels->find(std::to_string(id));
    if (found == labels->end() || !found->is_string()) {
      fail(subject, fmt::format("field \"id2label\" has no name for label {}", id));
    }
    config.id2label.push_back(found->get<std::string>());
  }
  const auto count = static_cast<std::int64_t>(config.id2label.size());
  if (config.num_labels && *config.num_labels != count) {
    fail(subject, fmt::format("num_labels is {} and id2label names {}", *config.num_labels, count));
  }
  if (count > 0) config.num_labels = count;
}

void read_positions(const JsonFields& fields, ModelConfig& config) {
  config.rope_theta = fields.maybe_number("rope_theta", 1, 1e12);
  if (const Json* scaling = fields.find("rope_scaling")) config.rope_scaling = *scaling;
  // Transformers 5 gathers both in one field.
  if (const Json* rope = fields.find("rope_parameters"); rope != nullptr && rope->is_object()) {
    config.rope_scaling = *rope;
    if (rope->contains("rope_theta") && !config.rope_theta) {
      config.rope_theta = JsonFields(*rope, "rope_parameters").maybe_number("rope_theta", 1, 1e12);
    }
  }
  config.sliding_window = fields.maybe_integer("sliding_window", 1, kMaxPositions);
  // Qwen2 writes a window that it does not use.
  if (!fields.boolean("use_sliding_window", true)) config.sliding_window.reset();
  config.pad_token_id = fields.maybe_integer("pad_token_id", -1, kMaxVocabulary);
}

bool attention_bias(const JsonFields& fields, Architecture architecture) {
  switch (architecture) {
    case Architecture::Qwen:
    case Architecture::Qwen2:
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
    case Architecture::Bloom:
    case Architecture::Phi:
      return true;
    case Architecture::Mpt:
      return !fields.boolean("no_bias", true);
    case Architecture::Falcon:
      return fields.boolean("bias", false);
    case Architecture::StarCoder2:
      return fields.boolean("use_bias", true);
    case Architecture::ModernBert:
      return fields.boolean("attention_bias", false);
    case Architecture::StableLm:
      return fields.boolean("use_qkv_bias", false);
    case Architecture::ChatGlm:
      return fields.boolean("add_qkv_bias", false);
    case Architecture::Opt:
      return fields.boolean("enable_bias", true);
    case Architecture::GptNeoX:
      return fields.boolean("attention_bias", true);
    default:
      return is_encoder(architecture) || fields.boolean("attention_bias", false);
  }
}

bool mlp_bias(const JsonFields& fields, Architecture architecture) {
  switch (architecture) {
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
    case Architecture::GptNeoX:
    case Architecture::Bloom:
    case Architecture::Phi:
      return true;
    case Architecture::Opt:
      return fields.boolean("enable_bias", true);
    case Architecture::Mpt:
      return !fields.boolean("no_bias", true);
    case Architecture::Falcon:
      return fields.boolean("bias", false);
    case Architecture::StarCoder2:
      return fields.boolean("use_bias", true);
    case Architecture::ModernBert:
      return fields.boolean("mlp_bias", false);
    case Architecture::ChatGlm:
      return fields.boolean("add_bias_linear", false);
    default:
      return is_encoder(architecture) || fields.boolean("mlp_bias", false);
  }
}

void read_structure(const JsonFields& fields, const ConfigKeys& keys, ModelConfig& config,
                    const std::string& subject) {
  const Architecture a = config.architecture;
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings", keys.ties_embeddings);
  config.attention_bias = attention_bias(fields, a);
  config.mlp_bias = mlp_bias(fields, a);
  config.parallel_residual = a == Architecture::Phi ||
                             (a == Architecture::Falcon && fields.boolean("parallel_attn", true)) ||
                             (a == Architecture::GptNeoX && fields.boolean("use_parallel_residual", true)) ||
                             (a == Architecture::StableLm && fields.boolean("use_parallel_residual", false));
  config.embedding = config.hidden;
  if (a == Architecture::Electra || a == Architecture::DebertaV2)
    config.embedding = fields.integer("embedding_size", 1, kMaxWidth, config.hidden);
  if (a == Architecture::Albert) {
    config.embedding = fields.integer("embedding_size", 1, kMaxWidth, 128);
    config.shares_blocks = true;
    if (fields.integer("num_hidden_groups", 1, kMaxLayers, 1) != 1 ||
        fields.integer("inner_group_num", 1, 64, 1) != 1) {
      throw Error(ErrorKind::Unsupported, subject, "has several groups of layers",
                  "ALBERT with one group is known");
    }
  }
  if (a == Architecture::Qwen3Moe) {
    config.experts = fields.integer("num_experts", 1, 4096, 128);
    config.experts_per_token = fields.integer("num_experts_per_tok", 1, 4096, 8);
    if (config.experts_per_token > config.experts)
      fail(subject, "field \"num_experts_per_tok\" exceeds num_experts");
  }
  fields.boolean("do_layer_norm_before",
                 true);  // read again where modules are listed: its type is checked here
  if (a == Architecture::Opt)
    config.embedding = fields.integer("word_embed_proj_dim", 1, kMaxWidth, config.hidden);
  if (a == Architecture::Mixtral) {
    config.experts = fields.integer("num_local_experts", 1, 4096, 8);
    config.experts_per_token = fields.integer("num_experts_per_tok", 1, 4096, 2);
    if (config.experts_per_token > config.experts) {
      fail(subject, fmt::format("{} experts a token are more than the {} there are", config.experts_per_token,
                                config.experts));
    }
  }
}

}  // namespace

ModelConfig model_config_from_json(const Json& document, const std::string& subject) {
  // A model that also sees images keeps its text model's shape in a document of its own.
  if (document.is_object() && document.value("model_type", Json()) == "gemma3" &&
      document.contains("text_config")) {
    Json text = document["text_config"];
    if (text.is_object()) text["model_type"] = "gemma3_text";
    return model_config_from_json(text, subject);
  }
  const JsonFields fields(document, subject);
  ModelConfig config;
  config.raw = document;
  config.model_type = fields.text("model_type");
  config.architecture = parse_architecture(config.model_type, subject);
  const ConfigKeys& keys = config_keys(config.architecture);
  read_sizes(fields, keys, config);
  read_heads(fields, config, subject);
  read_intermediate(fields, keys, config);
  read_rates(fields, keys, config);
  read_positions(fields, config);
  read_labels(fields, config, subject);
  read_structure(fields, keys, config, subject);
  return config;
}

ModelConfig read_model_config(const std::filesystem::path& folder_or_config_json) {
  std::filesystem::path path = folder_or_config_json;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    path /= "config.json";
    if (!std::filesystem::exists(path, ignored)) {
      throw Error(ErrorKind::NotFound, folder_or_config_json.string(), "has no config.json",
                  "Name a model's folder in Hugging Face layout");
    }
  }
  return model_config_from_json(read_json_file(path, 16 << 20), path.string());
}

}  // namespace batchwright::model
