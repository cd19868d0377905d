#pragma once

#include <string>
#include <vector>

#include "model/parameters.h"

namespace batchwright::model {

// Collects modules under name prefixes, in order.
class ModuleList {
 public:
  void set_layer(std::int64_t layer) { layer_ = layer; }
  void linear(const std::string& name, Role role, std::int64_t out, std::int64_t in, bool bias,
              bool transposed = false);
  void embedding(const std::string& name, Role role, std::int64_t rows, std::int64_t width);
  void norm(const std::string& name, Role role, std::int64_t width, bool bias);
  std::vector<Module> take() { return std::move(modules_); }
  Module& last() { return modules_.back(); }

 private:
  std::vector<Module> modules_;
  std::int64_t layer_ = -1;
};

// BERT, RoBERTa, DistilBERT, ELECTRA, with their task heads.
void list_encoder(const ModelConfig& config, Head head, std::int64_t num_labels, ModuleList& list);

// Every causal language model.
void list_decoder(const ModelConfig& config, Head head, std::int64_t num_labels, ModuleList& list);

}  // namespace batchwright::model
