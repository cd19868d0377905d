#include <fmt/format.h>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

std::string body_prefix(Architecture architecture, Head head) {
  if (head == Head::None) return "";
  if (architecture == Architecture::DebertaV2) return "deberta.";
  if (architecture == Architecture::ModernBert) return "model.";
  return fmt::format("{}.", architecture_name(architecture));
}

// Fields that only one family has stay in the document; their types are checked as they are read.
bool flag(const ModelConfig& c, std::string_view name, bool fallback) {
  return JsonFields(c.raw, c.model_type).boolean(name, fallback);
}

bool norm_bias(const ModelConfig& c) { return flag(c, "norm_bias", false); }

void list_embeddings(const ModelConfig& c, const std::string& body, ModuleList& list) {
  if (c.architecture == Architecture::ModernBert) {
    list.embedding(body + "embeddings.tok_embeddings", Role::WordEmbedding, c.vocabulary, c.hidden);
    list.norm(body + "embeddings.norm", Role::EmbeddingNorm, c.hidden, norm_bias(c));
    return;
  }
  list.embedding(body + "embeddings.word_embeddings", Role::WordEmbedding, c.vocabulary, c.embedding);
  if (c.architecture != Architecture::DebertaV2 || flag(c, "position_biased_input", true)) {
    list.embedding(body + "embeddings.position_embeddings", Role::PositionEmbedding, c.max_positions,
                   c.embedding);
  }
  if (c.type_vocabulary > 0)
    list.embedding(body + "embeddings.token_type_embeddings", Role::TypeEmbedding, c.type_vocabulary,
                   c.embedding);
  list.norm(body + "embeddings.LayerNorm", Role::EmbeddingNorm, c.embedding, true);
  if (c.architecture == Architecture::Albert) {
    list.linear(body + "encoder.embedding_hidden_mapping_in", Role::EmbeddingProjection, c.hidden,
                c.embedding, true);
  } else if (c.architecture == Architecture::DebertaV2 && c.embedding != c.hidden) {
    list.linear(body + "embeddings.embed_proj", Role::EmbeddingProjection, c.hidden, c.embedding, false);
  } else if (c.embedding != c.hidden) {
    list.linear(body + "embeddings_project", Role::EmbeddingProjection, c.hidden, c.embedding, true);
  }
}

void list_modernbert_layer(const ModelConfig& c, const std::string& layer, bool first, ModuleList& list) {
  if (!first) list.norm(layer + ".attn_norm", Role::AttentionNorm, c.hidden, norm_bias(c));
  list.linear(layer + ".attn.Wqkv", Role::QueryKeyValue, 3 * c.hidden, c.hidden, c.attention_bias);
  list.linear(layer + ".attn.Wo", Role::AttentionOutput, c.hidden, c.hidden, c.attention_bias);
  list.norm(layer + ".mlp_norm", Role::MlpNorm, c.hidden, norm_bias(c));
  list.linear(layer + ".mlp.Wi", Role::GateUp, 2 * c.intermediate, c.hidden, c.mlp_bias);
  list.linear(layer + ".mlp.Wo", Role::Down, c.hidden, c.intermediate, c.mlp_bias);
}

void list_albert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  list.norm(layer + ".full_layer_layer_norm", Role::MlpNorm, c.hidden, true);
  const std::string attention = layer + ".attention.";
  list.linear(attention + "query", Role::Query, c.hidden, c.hidden, true);
  list.linear(attention + "key", Role::Key, c.hidden, c.hidden, true);
  list.linear(attention + "value", Role::Value, c.hidden, c.hidden, true);
  list.linear(attention + "dense", Role::AttentionOutput, c.hidden, c.hidden, true);
  list.norm(attention + "LayerNorm", Role::AttentionNorm, c.hidden, true);
  list.linear(layer + ".ffn", Role::Up, c.intermediate, c.hidden, true);
  list.linear(layer + ".ffn_output", Role::Down, c.hidden, c.intermediate, true);
}

// The relative positions' embedding, its norm and the large models' convolution, shared by all layers.
void list_deberta_relative(const ModelConfig& c, const std::string& body, ModuleList& list) {
  if (!flag(c, "relative_attention", false)) return;
  const JsonFields fields(c.raw, c.model_type);
  const std::int64_t buckets = fields.integer("position_buckets", -1, 1 << 20, -1);
  const std::int64_t span = fields.integer("max_relative_positions", -1, 1 << 20, -1);
  const std::int64_t rows = 2 * (buckets > 0 ? buckets : (span > 0 ? span : c.max_positions));
  list.embedding(body + "encoder.rel_embeddings", Role::PositionEmbedding, rows, c.hidden);
  if (fields.text("norm_rel_ebd", "none") == "layer_norm")
    list.norm(body + "encoder.LayerNorm", Role::EmbeddingNorm, c.hidden, true);
  if (const std::int64_t kernel = fields.integer("conv_kernel_size", 0, 64, 0); kernel > 0) {
    list.linear(body + "encoder.conv.conv", Role::EmbeddingProjection, c.hidden, c.hidden * kernel, true);
    list.norm(body + "encoder.conv.LayerNorm", Role::EmbeddingNorm, c.hidden, true);
  }
}

void list_bert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  const std::string self = layer + ".attention.self.";
  const char* suffix = c.architecture == Architecture::DebertaV2 ? "_proj" : "";
  list.linear(self + "query" + suffix, Role::Query, c.hidden, c.hidden, true);
  list.linear(self + "key" + suffix, Role::Key, c.hidden, c.hidden, true);
  list.linear(self + "value" + suffix, Role::Value, c.hidden, c.hidden, true);
  list.linear(layer + ".attention.output.dense", Role::AttentionOutput, c.hidden, c.hidden, true);
  list.norm(layer + ".attention.output.LayerNorm", Role::AttentionNorm, c.hidden, true);
  list.linear(layer + ".intermediate.dense", Role::Up, c.intermediate, c.hidden, true);
  list.linear(layer + ".output.dense", Role::Down, c.hidden, c.intermediate, true);
  list.norm(layer + ".output.LayerNorm", Role::MlpNorm, c.hidden, true);
}

void list_distilbert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  const std::string attention = layer + ".attention.";
  list.linear(attention + "q_lin", Role::Query, c.hidden, c.hidden, true);
  list.linear(attention + "k_lin", Role::Key, c.hidden, c.hidden, true);
  list.linear(attention + "v_lin", Role::Value, c.hidden, c.hidden, true);
  list.linear(attention + "out_lin", Role::AttentionOutput, c.hidden, c.hidden, true);
  list.norm(layer + ".sa_layer_norm", Role::AttentionNorm, c.hidden, true);
  list.linear(layer + ".ffn.lin1", Role::Up, c.intermediate, c.hidden, true);
  list.linear(layer + ".ffn.lin2", Role::Down, c.hidden, c.intermediate, true);
  list.norm(layer + ".output_layer_norm", Role::MlpNorm, c.hidden, true);
}

// BertPooler belongs to the bare model and to sequence classification; token tasks are built without it, and
// RoBERTa, DistilBERT and ELECTRA classify with a head of two layers instead.
void list_head(const ModelConfig& c, Head head, std::int64_t labels, const std::string& body,
               ModuleList& list) {
  const bool bare_or_sequence = head == Head::None || head == Head::SequenceClassification;
  const bool pools = (c.architecture == Architecture::Bert && bare_or_sequence) ||
                     (c.architecture == Architecture::Roberta && head == Head::None);
  if (pools) list.linear(body + "pooler.dense", Role::Pooler, c.hidden, c.hidden, true);
  if (c.architecture == Architecture::Albert && bare_or_sequence)
    list.linear(body + "pooler", Role::Pooler, c.hidden, c.hidden, true);
  if (c.architecture == Architecture::DebertaV2 && head == Head::SequenceClassification)
    list.linear("pooler.dense", Role::Pooler, c.hidden, c.hidden, true);
  if (c.architecture == Architecture::ModernBert && head != Head::None) {
    list.linear("head.dense", Role::Pooler, c.hidden, c.hidden, flag(c, "classifier_bias", false));
    list.norm("head.norm", Role::FinalNorm, c.hidden, norm_bias(c));
  }
  switch (head) {
    case Head::None:
      return;
    case Head::SequenceClassification:
      if (c.architecture == Architecture::DistilBert) {
        list.linear("pre_classifier", Role::HeadDense, c.hidden, c.hidden, true);
        list.linear("classifier", Role::HeadOutput, labels, c.hidden, true);
      } else if (c.architecture != Architecture::Roberta && c.architecture != Architecture::Electra) {
        list.linear("classifier", Role::HeadOutput, labels, c.hidden, true);
      } else {
        list.linear("classifier.dense", Role::HeadDense, c.hidden, c.hidden, true);
        list.linear("classifier.out_proj", Role::HeadOutput, labels, c.hidden, true);
      }
      return;
    case Head::TokenClassification:
      list.linear("classifier", Role::HeadOutput, labels, c.hidden, true);
      return;
    case Head::QuestionAnswering:
      list.linear("qa_outputs", Role::HeadOutput, 2, c.hidden, true);
      return;
    case Head::CausalLm:
      throw Error(ErrorKind::Unsupported, "task",
                  fmt::format("{} is an encoder: it has no causal language model head",
                              architecture_name(c.architecture)),
                  "Use sequence-classification, token-classification or question-answering");
  }
}

}  // namespace

void list_encoder(const ModelConfig& config, Head head, std::int64_t num_labels, ModuleList& list) {
  const std::string body = body_prefix(config.architecture, head);
  const bool distil = config.architecture == Architecture::DistilBert;
  list_embeddings(config, body, list);
  if (config.architecture == Architecture::DebertaV2) list_deberta_relative(config, body, list);
  for (std::int64_t i = 0; i < (config.shares_blocks ? 1 : config.layers); ++i) {
    list.set_layer(i);
    if (config.architecture == Architecture::Albert) {
      list_albert_layer(config, body + "encoder.albert_layer_groups.0.albert_layers.0", list);
    } else if (config.architecture == Architecture::ModernBert) {
      list_modernbert_layer(config, fmt::format("{}layers.{}", body, i), i == 0, list);
    } else if (distil) {
      list_distilbert_layer(config, fmt::format("{}transformer.layer.{}", body, i), list);
    } else {
      list_bert_layer(config, fmt::format("{}encoder.layer.{}", body, i), list);
    }
  }
  list.set_layer(-1);
  if (config.architecture == Architecture::ModernBert)
    list.norm(body + "final_norm", Role::FinalNorm, config.hidden, norm_bias(config));
  list_head(config, head, num_labels, body, list);
}

}  // namespace batchwright::model
