#include "data/answers.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace batchwright::data {
namespace {

constexpr std::size_t kBest = 20;            // run_qa's n_best_size
constexpr std::int32_t kLongestAnswer = 30;  // run_qa's max_answer_length, in tokens
constexpr std::string_view kPunctuation =
    "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";  // Python's string.punctuation

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty() && word != "a" && word != "an" && word != "the") words.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      end_word();
    } else if (kPunctuation.find(c) == std::string_view::npos) {
      word += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
  end_word();
  return words;
}

double f1_of(const std::vector<std::string>& prediction, const std::vector<std::string>& answer) {
  if (prediction.empty() || answer.empty()) return prediction.empty() && answer.empty() ? 1 : 0;
  std::map<std::string_view, std::int64_t> left;
  for (const std::string& word : answer) ++left[word];
  std::int64_t common = 0;
  for (const std::string& word : prediction) common += left[word]-- > 0 ? 1 : 0;
  // 2 p r / (p + r) with p = common / prediction and r = common / answer.
  return 2.0 * static_cast<double>(common) / static_cast<double>(prediction.size() + answer.size());
}

template <class Score>
double best_over(std::span<const std::string_view> answers, const Score& score) {
  if (answers.empty()) return score(std::string_view());
  double best = 0;
  for (const std::string_view answer : answers) best = std::max(best, score(answer));
  return best;
}

// The positions of the largest logits of one column, largest first, ties by position.
std::vector<std::int32_t> largest(std::span<const float> logits, std::size_t column) {
  std::vector<std::int32_t> order(logits.size() / 2);
  std::iota(order.begin(), order.end(), 0);
  const auto at = [&](std::int32_t i) { return logits[2 * static_cast<std::size_t>(i) + column]; };
  const auto kept = static_cast<std::ptrdiff_t>(std::min(order.size(), kBest));
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [&](auto a, auto b) { return at(a) != at(b) ? at(a) > at(b) : a < b; });
  order.resize(static_cast<std::size_t>(kept));
  return order;
}

}  // namespace

std::string normalized_answer(std::string_view text) {
  std::string out;
  for (const std::string& word : words_of(text)) out += (out.empty() ? "" : " ") + word;
  return out;
}

double exact_match(std::string_view prediction, std::span<const std::string_view> answers) {
  const std::string own = normalized_answer(prediction);
  return best_over(answers,
                   [&](std::string_view answer) { return normalized_answer(answer) == own ? 1.0 : 0.0; });
}

double answer_f1(std::string_view prediction, std::span<const std::string_view> answers) {
  const auto own = words_of(prediction);
  return best_over(answers, [&](std::string_view answer) { return f1_of(own, words_of(answer)); });
}

WindowAnswers window_answers(const TokenFile& tokens, std::uint32_t row, std::span<const float> logits) {
  WindowAnswers result;
  result.null_score = static_cast<double>(logits[0]) + logits[1];
  const auto ends = largest(logits, 1);
  for (const std::int32_t start : largest(logits, 0)) {
    const TokenFile::Span from = tokens.characters(row, start);
    if (from.first < 0) continue;
    for (const std::int32_t end : ends) {
      const TokenFile::Span to = tokens.characters(row, end);
      if (to.first < 0 || end < start || end - start + 1 > kLongestAnswer) continue;
      const double score = static_cast<double>(logits[2 * static_cast<std::size_t>(start)]) +
                           logits[2 * static_cast<std::size_t>(end) + 1];
      result.candidates.push_back({score, from.first, to.last});
    }
  }
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  if (result.candidates.size() > kBest) result.candidates.resize(kBest);
  return result;
}

std::string_view best_answer(std::string_view context, std::span<const WindowAnswers> windows,
                             bool may_be_null) {
  const AnswerCandidate* best = nullptr;
  double null_score = windows.empty() ? 0 : windows.front().null_score;
  for (const WindowAnswers& window : windows) {
    null_score = std::min(null_score, window.null_score);
    if (window.candidates.empty()) continue;
    const AnswerCandidate& candidate = window.candidates.front();
    if (best == nullptr || candidate.score > best->score) best = &candidate;
  }
  if (best == nullptr || (may_be_null && null_score > best->score)) return {};
  return context.substr(static_cast<std::size_t>(best->begin),
                        static_cast<std::size_t>(best->end - best->begin));
}

}  // namespace batchwright::data
