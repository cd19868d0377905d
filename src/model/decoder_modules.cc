#include <fmt/format.h>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

// What one family calls its modules and which of them it has. Source: the modeling_*.py files of
// Transformers 4.57 (Qwen 1, Baichuan and ChatGLM: the code published with their weights).
struct DecoderNames {
  std::string body, head = "lm_head", classifier = "score";
  std::string tokens = "embed_tokens", positions;  // positions empty: no learned positions
  std::string layers = "layers", attention = "self_attn", mlp = "mlp";
  std::string q = "q_proj", k = "k_proj", v = "v_proj", fused_qkv, o = "o_proj";
  std::string gate = "gate_proj", up = "up_proj", fused_gate_up,
              down = "down_proj";  // gate empty: a plain MLP
  std::string input_norm = "input_layernorm", mlp_norm = "post_attention_layernorm", final_norm = "norm";
  std::string embedding_norm, pre_mlp_norm, post_mlp_norm;
  bool norm_bias = false, output_bias = false, transposed = false, qk_norm = false, norm_has_weight = true;
};

DecoderNames gpt2_names(const ModelConfig& c) {
  DecoderNames n;
  n.body = "transformer", n.tokens = "wte", n.positions = "wpe", n.layers = "h", n.attention = "attn";
  n.fused_qkv = "c_attn", n.o = "c_proj", n.gate = "", n.up = "c_fc", n.down = "c_proj";
  n.input_norm = "ln_1", n.mlp_norm = "ln_2", n.final_norm = "ln_f";
  n.norm_bias = n.output_bias = true;
  n.transposed = c.architecture == Architecture::Gpt2;
  return n;
}

DecoderNames neox_names(const ModelConfig& c) {
  DecoderNames n;
  n.body = "gpt_neox", n.head = "embed_out", n.tokens = "embed_in", n.attention = "attention";
  n.fused_qkv = "query_key_value", n.o = "dense", n.gate = "", n.up = "dense_h_to_4h",
  n.down = "dense_4h_to_h";
  n.final_norm = "final_layer_norm", n.norm_bias = true, n.output_bias = c.attention_bias;
  return n;
}

DecoderNames bloom_names(const ModelConfig& c) {
  DecoderNames n = neox_names(c);
  n.body = "transformer", n.head = "lm_head", n.tokens = "word_embeddings", n.layers = "h";
  n.attention = "self_attention", n.final_norm = "ln_f";
  if (c.architecture == Architecture::Bloom) n.embedding_norm = "word_embeddings_layernorm";
  return n;
}

// With parallel attention and the old decoder one norm serves both branches.
DecoderNames falcon_names(const ModelConfig& c) {
  DecoderNames n = bloom_names(c);
  const bool new_decoder = JsonFields(c.raw, c.model_type).boolean("new_decoder_architecture", false);
  if (c.parallel_residual && new_decoder) n.input_norm = "ln_attn", n.mlp_norm = "ln_mlp";
  if (c.parallel_residual && !new_decoder) n.mlp_norm = "";
  n.output_bias = c.attention_bias;
  return n;
}

DecoderNames opt_names(const ModelConfig& c) {
  DecoderNames n;
  n.body = "model.decoder", n.positions = "embed_positions", n.o = "out_proj", n.gate = "", n.up = "fc1";
  n.down = "fc2", n.mlp = "", n.input_norm = "self_attn_layer_norm", n.mlp_norm = "final_layer_norm";
  n.final_norm = "final_layer_norm", n.norm_bias = true, n.output_bias = c.attention_bias;
  if (!JsonFields(c.raw, c.model_type).boolean("do_layer_norm_before", true)) n.final_norm = "";  // opt-350m
  return n;
}

DecoderNames mpt_names(const ModelConfig& c) {
  DecoderNames n;
  n.body = "transformer", n.tokens = "wte", n.layers = "blocks", n.attention = "attn", n.fused_qkv = "Wqkv";
  n.o = "out_proj", n.mlp = "ffn", n.gate = "", n.input_norm = "norm_1", n.mlp_norm = "norm_2";
  n.final_norm = "norm_f", n.output_bias = c.attention_bias;
  return n;
}

DecoderNames phi_names() {
  DecoderNames n;
  n.body = "model", n.o = "dense", n.gate = "", n.up = "fc1", n.down = "fc2", n.mlp_norm = "";
  n.final_norm = "final_layernorm", n.norm_bias = n.output_bias = true;
  return n;
}

DecoderNames qwen_names() {
  DecoderNames n;
  n.body = "transformer", n.tokens = "wte", n.layers = "h", n.attention = "attn", n.fused_qkv = "c_attn";
  n.o = "c_proj", n.gate = "w2", n.up = "w1", n.down = "c_proj";
  n.input_norm = "ln_1", n.mlp_norm = "ln_2", n.final_norm = "ln_f";
  return n;
}

DecoderNames chatglm_names() {
  DecoderNames n;
  n.body = "transformer.encoder", n.head = "output_layer", n.attention = "self_attention";
  n.fused_qkv = "query_key_value", n.o = "dense", n.fused_gate_up = "dense_h_to_4h", n.down = "dense_4h_to_h";
  n.final_norm = "final_layernorm";
  return n;
}

DecoderNames llama_like_names(const ModelConfig& c) {
  DecoderNames n;
  n.body = "model";
  n.qk_norm = c.architecture == Architecture::Qwen3 || c.architecture == Architecture::Qwen3Moe ||
              c.architecture == Architecture::Gemma3 || c.architecture == Architecture::Olmo2;
  n.output_bias =
      c.attention_bias && (c.architecture == Architecture::Llama || c.architecture == Architecture::Granite ||
                           c.architecture == Architecture::Qwen3);
  n.norm_has_weight = c.architecture != Architecture::Olmo;
  if (c.architecture == Architecture::StableLm) n.norm_bias = true;
  if (c.architecture == Architecture::Phi3) n.fused_qkv = "qkv_proj", n.fused_gate_up = "gate_up_proj";
  if (c.architecture == Architecture::Baichuan) n.fused_qkv = "W_pack";
  if (c.architecture == Architecture::Gemma2 || c.architecture == Architecture::Gemma3)
    n.pre_mlp_norm = "pre_feedforward_layernorm", n.post_mlp_norm = "post_feedforward_layernorm";
  if (c.architecture == Architecture::Olmo2)
    n.input_norm = "", n.post_mlp_norm = "post_feedforward_layernorm";
  if (c.architecture == Architecture::StarCoder2) {
    n.norm_bias = true, n.output_bias = c.attention_bias;
    n.gate = "", n.up = "c_fc", n.down = "c_proj";
  }
  return n;
}

DecoderNames names_of(const ModelConfig& c) {
  switch (c.architecture) {
    case Architecture::Gpt2:
    case Architecture::GptBigCode:
      return gpt2_names(c);
    case Architecture::GptNeoX:
      return neox_names(c);
    case Architecture::Bloom:
      return bloom_names(c);
    case Architecture::Falcon:
      return falcon_names(c);
    case Architecture::Opt:
      return opt_names(c);
    case Architecture::Mpt:
      return mpt_names(c);
    case Architecture::Phi:
      return phi_names();
    case Architecture::Qwen:
      return qwen_names();
    case Architecture::ChatGlm:
      return chatglm_names();
    default:
      return llama_like_names(c);
  }
}

std::string under(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void list_attention(const ModelConfig& c, const DecoderNames& n, const std::string& layer, ModuleList& list) {
  const std::string at = under(layer, n.attention);
  const std::int64_t queries = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
  if (!n.fused_qkv.empty()) {
    list.linear(under(at, n.fused_qkv), Role::QueryKeyValue, queries + 2 * keys, c.hidden, c.attention_bias,
                n.transposed);
  } else {
    list.linear(under(at, n.q), Role::Query, queries, c.hidden, c.attention_bias);
    list.linear(under(at, n.k), Role::Key, keys, c.hidden, c.attention_bias);
    list.linear(under(at, n.v), Role::Value, keys, c.hidden, c.attention_bias);
  }
  list.linear(under(at, n.o), Role::AttentionOutput, c.hidden, queries, n.output_bias, n.transposed);
  if (n.qk_norm) {
    const bool whole = c.architecture == Architecture::Olmo2;  // over all heads at once
    list.norm(under(at, "q_norm"), Role::QueryNorm, whole ? queries : c.head_dim, false);
    list.norm(under(at, "k_norm"), Role::KeyNorm, whole ? keys : c.head_dim, false);
  }
}

void list_experts(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  const bool mixtral = c.architecture == Architecture::Mixtral;
  const std::string at = layer + (mixtral ? ".block_sparse_moe" : ".mlp");
  list.linear(at + ".gate", Role::Router, c.experts, c.hidden, false);
  for (std::int64_t e = 0; e < c.experts; ++e) {
    const std::string expert = fmt::format("{}.experts.{}.", at, e);
    list.linear(expert + (mixtral ? "w1" : "gate_proj"), Role::Gate, c.intermediate, c.hidden, false);
    if (mixtral) list.linear(expert + "w2", Role::Down, c.hidden, c.intermediate, false);
    list.linear(expert + (mixtral ? "w3" : "up_proj"), Role::Up, c.intermediate, c.hidden, false);
    if (!mixtral) list.linear(expert + "down_proj", Role::Down, c.hidden, c.intermediate, false);
  }
}

void list_mlp(const ModelConfig& c, const DecoderNames& n, const std::string& layer, ModuleList& list) {
  if (c.experts > 0) return list_experts(c, layer, list);
  const std::string at = n.mlp.empty() ? layer : under(layer, n.mlp);
  if (!n.fused_gate_up.empty()) {
    list.linear(under(at, n.fused_gate_up), Role::GateUp, 2 * c.intermediate, c.hidden, c.mlp_bias);
  } else {
    if (!n.gate.empty()) list.linear(under(at, n.gate), Role::Gate, c.intermediate, c.hidden, c.mlp_bias);
    list.linear(under(at, n.up), Role::Up, c.intermediate, c.hidden, c.mlp_bias, n.transposed);
  }
  list.linear(under(at, n.down), Role::Down, c.hidden, c.intermediate, c.mlp_bias, n.transposed);
}

void list_layer(const ModelConfig& c, const DecoderNames& n, const std::string& layer, ModuleList& list) {
  list_attention(c, n, layer, list);
  list_mlp(c, n, layer, list);
  if (!n.norm_has_weight) return;
  const auto norm = [&](const std::string& name, Role role) {
    if (!name.empty()) list.norm(under(layer, name), role, c.hidden, n.norm_bias);
  };
  norm(n.input_norm, Role::AttentionNorm);
  norm(n.mlp_norm, Role::MlpNorm);
  norm(n.pre_mlp_norm, Role::ExtraNorm);
  norm(n.post_mlp_norm, Role::ExtraNorm);
}

void list_embeddings(const ModelConfig& c, const DecoderNames& n, const std::string& body, ModuleList& list) {
  list.embedding(under(body, n.tokens), Role::WordEmbedding, c.vocabulary, c.embedding);
  // OPT keeps two positions in front of the first.
  const std::int64_t spare = c.architecture == Architecture::Opt ? 2 : 0;
  if (!n.positions.empty())
    list.embedding(under(body, n.positions), Role::PositionEmbedding, c.max_positions + spare, c.hidden);
  if (!n.embedding_norm.empty())
    list.norm(under(body, n.embedding_norm), Role::EmbeddingNorm, c.hidden, n.norm_bias);
  if (c.embedding != c.hidden) {
    list.linear(under(body, "project_out"), Role::EmbeddingProjection, c.embedding, c.hidden, false);
    list.linear(under(body, "project_in"), Role::EmbeddingProjection, c.hidden, c.embedding, false);
  }
}

void list_head(const ModelConfig& c, const DecoderNames& n, Head head, std::int64_t labels,
               ModuleList& list) {
  switch (head) {
    case Head::None:
      return;
    case Head::CausalLm:
      list.linear(n.head, Role::HeadOutput, c.vocabulary, c.embedding, c.architecture == Architecture::Phi);
      list.last().tied = c.tie_word_embeddings;
      return;
    case Head::SequenceClassification:
      list.linear(n.classifier, Role::HeadOutput, labels, c.hidden, false);
      return;
    case Head::TokenClassification:
      list.linear(c.architecture == Architecture::Gpt2 ? "classifier" : n.classifier, Role::HeadOutput,
                  labels, c.hidden, true);
      return;
    case Head::QuestionAnswering:
      list.linear("qa_outputs", Role::HeadOutput, 2, c.hidden, true);
      return;
  }
}

}  // namespace

void list_decoder(const ModelConfig& config, Head head, std::int64_t num_labels, ModuleList& list) {
  const DecoderNames names = names_of(config);
  const std::string body = head == Head::None ? "" : names.body;
  list_embeddings(config, names, body, list);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    list.set_layer(i);
    list_layer(config, names, under(body, fmt::format("{}.{}", names.layers, i)), list);
  }
  list.set_layer(-1);
  if (names.norm_has_weight && !names.final_norm.empty())
    list.norm(under(body, names.final_norm), Role::FinalNorm, config.hidden, names.norm_bias);
  list_head(config, names, head, num_labels, list);
}

}  // namespace batchwright::model
