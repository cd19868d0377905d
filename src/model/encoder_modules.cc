#include <fmt/format.h>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

std::string body_prefix(Architecture architecture, Head head) {
  return head == Head::None ? "" : fmt::format("{}.", architecture_name(architecture));
}

void list_embeddings(const ModelConfig& c, const std::string& body, ModuleList& list) {
  list.embedding(body + "embeddings.word_embeddings", Role::WordEmbedding, c.vocabulary, c.embedding);
  list.embedding(body + "embeddings.position_embeddings", Role::PositionEmbedding, c.max_positions,
                 c.embedding);
  if (c.type_vocabulary > 0)
    list.embedding(body + "embeddings.token_type_embeddings", Role::TypeEmbedding, c.type_vocabulary,
                   c.embedding);
  list.norm(body + "embeddings.LayerNorm", Role::EmbeddingNorm, c.embedding, true);
  if (c.embedding != c.hidden)
    list.linear(body + "embeddings_project", Role::EmbeddingProjection, c.hidden, c.embedding, true);
}

void list_bert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  const std::string self = layer + ".attention.self.";
  list.linear(self + "query", Role::Query, c.hidden, c.hidden, true);
  list.linear(self + "key", Role::Key, c.hidden, c.hidden, true);
  list.linear(self + "value", Role::Value, c.hidden, c.hidden, true);
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
  switch (head) {
    case Head::None:
      return;
    case Head::SequenceClassification:
      if (c.architecture == Architecture::DistilBert) {
        list.linear("pre_classifier", Role::HeadDense, c.hidden, c.hidden, true);
        list.linear("classifier", Role::HeadOutput, labels, c.hidden, true);
      } else if (c.architecture == Architecture::Bert) {
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
  for (std::int64_t i = 0; i < config.layers; ++i) {
    list.set_layer(i);
    if (distil) {
      list_distilbert_layer(config, fmt::format("{}transformer.layer.{}", body, i), list);
    } else {
      list_bert_layer(config, fmt::format("{}encoder.layer.{}", body, i), list);
    }
  }
  list.set_layer(-1);
  list_head(config, head, num_labels, body, list);
}

}  // namespace batchwright::model
