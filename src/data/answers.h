#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/token_file.h"

namespace batchwright::data {

// SQuAD's comparison of answers (Rajpurkar et al. 2016, evaluation script): lower case, without punctuation,
// the articles a, an, the, and surplus blanks.
std::string normalized_answer(std::string_view text);
// Both in [0, 1], the best over the answers; an empty list stands for "no answer", which only "" meets.
double exact_match(std::string_view prediction, std::span<const std::string_view> answers);
double answer_f1(std::string_view prediction, std::span<const std::string_view> answers);

// Part of a context that may be the answer.
struct AnswerCandidate {
  double score = 0;                 // start logit + end logit
  std::int32_t begin = 0, end = 0;  // bytes of the context
};

// What one window says: its best candidates, best first, and the score of "no answer", at the window's first
// token. As Transformers' run_qa: starts and ends among the 20 largest logits, at most 30 tokens long.
struct WindowAnswers {
  std::vector<AnswerCandidate> candidates;
  double null_score = 0;
};
// logits [tokens of the row, 2].
WindowAnswers window_answers(const TokenFile& tokens, std::uint32_t row, std::span<const float> logits);

// The predicted text of one question from all its windows. `may_be_null`: "" is predicted where its score is
// above every candidate's (SQuAD 2); otherwise only when there is no candidate.
std::string_view best_answer(std::string_view context, std::span<const WindowAnswers> windows,
                             bool may_be_null);

}  // namespace batchwright::data
