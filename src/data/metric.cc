#include "data/metric.h"

#include <algorithm>
#include <map>

#include "data/answers.h"
#include "data/entities.h"

namespace batchwright::data {
namespace {

using Values = std::vector<std::pair<std::string, double>>;

double ratio(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::size_t largest_of(std::span<const float> logits) {
  return static_cast<std::size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class Accuracy final : public Metric {
 public:
  explicit Accuracy(const TokenFile& tokens) : tokens_(tokens) {}
  void add(std::uint32_t row, std::span<const float> logits) override {
    ++rows_;
    correct_ += static_cast<std::int32_t>(largest_of(logits)) == tokens_.label(row) ? 1 : 0;
  }
  Values values() const override { return {{"accuracy", ratio(correct_, rows_)}}; }

 private:
  const TokenFile& tokens_;
  std::int64_t rows_ = 0, correct_ = 0;
};

class EntityScores final : public Metric {
 public:
  explicit EntityScores(const TokenFile& tokens) : tokens_(tokens) {}
  void add(std::uint32_t row, std::span<const float> logits) override {
    const auto& names = tokens_.label_names();
    std::vector<std::string_view> truth, predicted;
    for (const std::int32_t label : tokens_.token_labels(row)) {
      if (label == TokenFile::kNoLabel) continue;
      const std::size_t said = largest_of(logits.subspan(truth.size() * names.size(), names.size()));
      correct_ += static_cast<std::int32_t>(said) == label ? 1 : 0;
      truth.push_back(names[static_cast<std::size_t>(label)]);
      predicted.push_back(names[said]);
    }
    words_ += std::ssize(truth);
    const auto real = find_entities(truth), found = find_entities(predicted);
    real_ += std::ssize(real);
    found_ += std::ssize(found);
    for (const Entity& entity : found) hits_ += std::count(real.begin(), real.end(), entity);
  }
  Values values() const override {
    return {{"precision", ratio(hits_, found_)},
            {"recall", ratio(hits_, real_)},
            {"f1", ratio(2 * hits_, found_ + real_)},
            {"accuracy", ratio(correct_, words_)},
            {"entities", static_cast<double>(real_)}};
  }

 private:
  const TokenFile& tokens_;
  std::int64_t words_ = 0, correct_ = 0, real_ = 0, found_ = 0, hits_ = 0;
};

class AnswerScores final : public Metric {
 public:
  explicit AnswerScores(const TokenFile& tokens) : tokens_(tokens) {
    for (std::uint32_t i = 0; i < tokens.questions(); ++i)
      may_be_null_ = may_be_null_ || tokens.answers(i).empty();
  }
  void add(std::uint32_t row, std::span<const float> logits) override {
    windows_[tokens_.question(row)].emplace(row, window_answers(tokens_, row, logits));
  }
  Values values() const override {
    double exact = 0, f1 = 0;
    for (const auto& [question, by_row] : windows_) {
      std::vector<WindowAnswers> windows;
      for (const auto& [row, window] : by_row) windows.push_back(window);
      const std::string_view text = best_answer(tokens_.context(question), windows, may_be_null_);
      const auto answers = tokens_.answers(question);
      exact += exact_match(text, answers);
      f1 += answer_f1(text, answers);
    }
    const double count = std::max(1.0, static_cast<double>(windows_.size()));
    return {{"exact_match", exact / count},
            {"f1", f1 / count},
            {"questions", static_cast<double>(windows_.size())}};
  }

 private:
  const TokenFile& tokens_;
  bool may_be_null_ = false;
  std::map<std::uint32_t, std::map<std::uint32_t, WindowAnswers>> windows_;  // question -> row
};

}  // namespace

std::unique_ptr<Metric> make_metric(const TokenFile& tokens) {
  switch (tokens.task()) {
    case Task::SequenceClassification:
      return std::make_unique<Accuracy>(tokens);
    case Task::TokenClassification:
      return std::make_unique<EntityScores>(tokens);
    case Task::QuestionAnswering:
      return std::make_unique<AnswerScores>(tokens);
    case Task::CausalLm:
      return nullptr;
  }
  return nullptr;
}

}  // namespace batchwright::data
