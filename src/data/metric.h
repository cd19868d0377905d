#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/token_file.h"

namespace batchwright::data {

// What a task is judged by, in the field's own measure, gathered row by row in any order.
class Metric {
 public:
  virtual ~Metric() = default;
  // logits [labels of the row or its tokens, classes or 2]: one line a target for classification, one a token
  // for question answering.
  virtual void add(std::uint32_t row, std::span<const float> logits) = 0;
  // Names as Transformers' examples report them, and numbers in [0, 1]; counts stay counts.
  virtual std::vector<std::pair<std::string, double>> values() const = 0;
};

// "accuracy"; "accuracy", "precision", "recall", "f1" of entities; "exact_match", "f1" of answers. nullptr
// for causal-lm, whose perplexity is the exponential of its loss. `tokens` must outlive it.
std::unique_ptr<Metric> make_metric(const TokenFile& tokens);

}  // namespace batchwright::data
