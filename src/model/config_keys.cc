#include "model/config_keys.h"

#include <array>

namespace batchwright::model {
namespace {

ConfigKeys encoder_keys() {
  return {"hidden_size",
          "num_hidden_layers",
          "num_attention_heads",
          "intermediate_size",
          "vocab_size",
          "max_position_embeddings",
          "layer_norm_eps",
          "hidden_dropout_prob",
          "attention_probs_dropout_prob",
          "classifier_dropout",
          "hidden_act",
          512,
          1e-12,
          0.1,
          "gelu",
          true,
          true};
}

// No token types; a position embedding only where a file asks for it.
ConfigKeys deberta_keys() {
  ConfigKeys keys = encoder_keys();
  keys.classifier_dropout = "cls_dropout";
  keys.default_norm_epsilon = 1e-7;
  return keys;
}

ConfigKeys albert_keys() {
  ConfigKeys keys = encoder_keys();
  keys.classifier_dropout = "classifier_dropout_prob";
  keys.default_dropout = 0;
  keys.default_activation = "gelu_new";
  return keys;
}

ConfigKeys modernbert_keys() {
  ConfigKeys keys = encoder_keys();
  keys.norm_epsilon = "norm_eps";
  keys.default_norm_epsilon = 1e-5;
  keys.hidden_dropout = "mlp_dropout";
  keys.attention_dropout = "attention_dropout";
  keys.activation = "hidden_activation";
  keys.default_dropout = 0;
  keys.default_positions = 8192;
  keys.has_token_types = false;
  return keys;
}

ConfigKeys distilbert_keys() {
  return {"dim",
          "n_layers",
          "n_heads",
          "hidden_dim",
          "vocab_size",
          "max_position_embeddings",
          "layer_norm_eps",
          "dropout",
          "attention_dropout",
          "seq_classif_dropout",
          "activation",
          512,
          1e-12,
          0.1,
          "gelu",
          false,
          true};
}

ConfigKeys gpt2_keys() {
  return {"n_embd",
          "n_layer",
          "n_head",
          "n_inner",
          "vocab_size",
          "n_positions",
          "layer_norm_epsilon",
          "resid_pdrop",
          "attn_pdrop",
          "classifier_dropout",
          "activation_function",
          1024,
          1e-5,
          0.1,
          "gelu_new",
          false,
          true};
}

ConfigKeys llama_keys(bool ties) {
  return {"hidden_size",
          "num_hidden_layers",
          "num_attention_heads",
          "intermediate_size",
          "vocab_size",
          "max_position_embeddings",
          "rms_norm_eps",
          "hidden_dropout",
          "attention_dropout",
          "classifier_dropout",
          "hidden_act",
          2048,
          1e-6,
          0,
          "silu",
          false,
          ties};
}

// As Llama, with LayerNorm's name for epsilon.
ConfigKeys layer_norm_keys(std::string_view epsilon, bool ties, std::string_view activation) {
  ConfigKeys keys = llama_keys(ties);
  keys.norm_epsilon = epsilon;
  keys.default_norm_epsilon = 1e-5;
  keys.default_activation = activation;
  return keys;
}

ConfigKeys opt_keys() {
  ConfigKeys keys = layer_norm_keys("layer_norm_eps", true, "relu");
  keys.intermediate = "ffn_dim";
  keys.hidden_dropout = "dropout";
  keys.default_dropout = 0.1;
  keys.activation = "activation_function";
  return keys;
}

ConfigKeys bloom_keys() {
  ConfigKeys keys = layer_norm_keys("layer_norm_epsilon", true, "gelu");
  keys.layers = "n_layer";
  keys.heads = "n_head";
  keys.intermediate = "n_inner";
  keys.positions = "seq_length";
  return keys;
}

ConfigKeys mpt_keys() {
  ConfigKeys keys = layer_norm_keys("layer_norm_epsilon", true, "gelu");
  keys.hidden = "d_model";
  keys.layers = "n_layers";
  keys.heads = "n_heads";
  keys.intermediate = "expansion_ratio";
  keys.positions = "max_seq_len";
  keys.hidden_dropout = "resid_pdrop";
  return keys;
}

ConfigKeys falcon_keys() {
  ConfigKeys keys = layer_norm_keys("layer_norm_epsilon", true, "gelu");
  keys.intermediate = "ffn_hidden_size";
  return keys;
}

ConfigKeys qwen_keys() {
  ConfigKeys keys = layer_norm_keys("layer_norm_epsilon", false, "silu");
  keys.positions = "seq_length";
  keys.hidden_dropout = "emb_dropout_prob";
  keys.attention_dropout = "attn_dropout_prob";
  keys.default_positions = 8192;
  return keys;
}

ConfigKeys chatglm_keys() {
  ConfigKeys keys = layer_norm_keys("layernorm_epsilon", false, "silu");
  keys.layers = "num_layers";
  keys.intermediate = "ffn_hidden_size";
  keys.vocabulary = "padded_vocab_size";
  keys.positions = "seq_length";
  return keys;
}

ConfigKeys make_keys(Architecture architecture) {
  switch (architecture) {
    case Architecture::Bert:
    case Architecture::Roberta:
    case Architecture::Electra:
      return encoder_keys();
    case Architecture::Albert:
      return albert_keys();
    case Architecture::DebertaV2:
      return deberta_keys();
    case Architecture::ModernBert:
      return modernbert_keys();
    case Architecture::DistilBert:
      return distilbert_keys();
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
      return gpt2_keys();
    case Architecture::GptNeoX:
      return layer_norm_keys("layer_norm_eps", false, "gelu");
    case Architecture::StableLm:
      return layer_norm_keys("layer_norm_eps", false, "silu");
    case Architecture::Phi:
      return layer_norm_keys("layer_norm_eps", false, "gelu_new");
    case Architecture::Opt:
      return opt_keys();
    case Architecture::Bloom:
      return bloom_keys();
    case Architecture::Mpt:
      return mpt_keys();
    case Architecture::Falcon:
      return falcon_keys();
    case Architecture::Qwen:
      return qwen_keys();
    case Architecture::ChatGlm:
      return chatglm_keys();
    case Architecture::Gemma:
    case Architecture::Gemma2:
    case Architecture::Gemma3:
      return llama_keys(true);
    case Architecture::StarCoder2: {
      ConfigKeys keys = layer_norm_keys("norm_epsilon", true, "gelu_pytorch_tanh");
      keys.hidden_dropout = "residual_dropout";
      return keys;
    }
    default:
      return llama_keys(false);
  }
}

}  // namespace

const ConfigKeys& config_keys(Architecture architecture) {
  static const auto table = [] {
    std::array<ConfigKeys, static_cast<std::size_t>(Architecture::ChatGlm) + 1> keys;
    for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = make_keys(static_cast<Architecture>(i));
    return keys;
  }();
  return table[static_cast<std::size_t>(architecture)];
}

}  // namespace batchwright::model
