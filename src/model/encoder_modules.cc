#include <fmt/format.h>

#include "base/error.h"
#include "model/module_list.h"

namespace batchwright::model {
namespace {

std::string body_prefix(Architecture architecture, Head head) {
  return head == Head::None ? "" : fmt::format("{}.", architecture_name(architecture));
}

void list_embeddings(const ModelConfig& c, const std::string& body, ModuleList& list) {
  list.embedding(body + "embeddings.word_embeddings", c.vocabulary, c.embedding);
  list.embedding(body + "embeddings.position_embeddings", c.max_positions, c.embedding);
  if (c.type_vocabulary > 0)
    list.embedding(body + "embeddings.token_type_embeddings", c.type_vocabulary, c.embedding);
  list.norm(body + "embeddings.LayerNorm", c.embedding, true);
  if (c.embedding != c.hidden)
    list.linear(body + "embeddings_project", Part::Embedding, c.hidden, c.embedding, true);
}

void list_bert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  for (const char* name : {"query", "key", "value"}) {
    list.linear(fmt::format("{}.attention.self.{}", layer, name), Part::Attention, c.hidden, c.hidden, true);
  }
  list.linear(layer + ".attention.output.dense", Part::Attention, c.hidden, c.hidden, true);
  list.norm(layer + ".attention.output.LayerNorm", c.hidden, true);
  list.linear(layer + ".intermediate.dense", Part::Mlp, c.intermediate, c.hidden, true);
  list.linear(layer + ".output.dense", Part::Mlp, c.hidden, c.intermediate, true);
  list.norm(layer + ".output.LayerNorm", c.hidden, true);
}

void list_distilbert_layer(const ModelConfig& c, const std::string& layer, ModuleList& list) {
  for (const char* name : {"q_lin", "k_lin", "v_lin", "out_lin"}) {
    list.linear(fmt::format("{}.attention.{}", layer, name), Part::Attention, c.hidden, c.hidden, true);
  }
  list.norm(layer + ".sa_layer_norm", c.hidden, true);
  list.linear(layer + ".ffn.lin1", Part::Mlp, c.intermediate, c.hidden, true);
  list.linear(layer + ".ffn.lin2", Part::Mlp, c.hidden, c.intermediate, true);
  list.norm(layer + ".output_layer_norm", c.hidden, true);
}

// BertPooler belongs to the bare model and to sequence classification; token tasks are built without it, and
// RoBERTa, DistilBERT and ELECTRA classify with a head of two layers instead.
void list_head(const ModelConfig& c, Head head, std::int64_t labels, const std::string& body,
               ModuleList& list) {
  const bool bare_or_sequence = head == Head::None || head == Head::SequenceClassification;
  const bool pools = (c.architecture == Architecture::Bert && bare_or_sequence) ||
                     (c.architecture == Architecture::Roberta && head == Head::None);
  if (pools) list.linear(body + "pooler.dense", Part::Pooler, c.hidden, c.hidden, true);
  switch (head) {
    case Head::None:
      return;
    case Head::SequenceClassification:
      if (c.architecture == Architecture::DistilBert) {
        list.linear("pre_classifier", Part::Head, c.hidden, c.hidden, true);
        list.linear("classifier", Part::Head, labels, c.hidden, true);
      } else if (c.architecture == Architecture::Bert) {
        list.linear("classifier", Part::Head, labels, c.hidden, true);
      } else {
        list.linear("classifier.dense", Part::Head, c.hidden, c.hidden, true);
        list.linear("classifier.out_proj", Part::Head, labels, c.hidden, true);
      }
      return;
    case Head::TokenClassification:
      list.linear("classifier", Part::Head, labels, c.hidden, true);
      return;
    case Head::QuestionAnswering:
      list.linear("qa_outputs", Part::Head, 2, c.hidden, true);
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
