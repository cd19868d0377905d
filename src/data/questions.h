#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace batchwright::data {

struct Answer {
  std::string text;
  std::int64_t start = 0;  // in characters (Unicode code points) of the context
};

struct Question {
  std::string id, text;
  std::size_t context = 0;                // which of QuestionSet::contexts
  std::vector<Answer> answers;            // empty: the context has none
  std::array<std::size_t, 3> place = {};  // its article, paragraph and number there
};

// The questions of one context lie together.
struct QuestionSet {
  std::vector<std::string> contexts;
  std::vector<Question> questions;
};

// Reads SQuAD's JSON, version 1 or 2 ("is_impossible" questions have no answers). Every answer must stand in
// its context where "answer_start" says. Throws NotFound or InvalidInput, with "path:line".
QuestionSet read_squad(const std::filesystem::path& path);
QuestionSet parse_squad(std::string_view content, const std::string& subject);

// The 1-based line on which a question of this content begins; looked for only when it is needed.
std::int64_t question_line(std::string_view content, const Question& question);

}  // namespace batchwright::data
