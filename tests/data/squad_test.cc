#include <gtest/gtest.h>

#include "base/error.h"
#include "data/answers.h"
#include "data/json_place.h"
#include "data/questions.h"

namespace batchwright::data {
namespace {

// One paragraph over several lines, with these questions.
std::string squad(const std::string& questions) {
  return "{\"version\": \"v2.0\",\n \"data\": [{\"title\": \"T\", \"paragraphs\": [\n"
         "  {\"context\": \"Caf\xc3\xa9 Roma is in Rome.\", \"qas\": [\n" +
         questions + "]}]}]}";
}
std::string question(const std::string& id, const std::string& answer, int start) {
  return "   {\"id\": \"" + id + "\", \"question\": \"Where?\", \"answers\": [{\"text\": \"" + answer +
         "\", \"answer_start\": " + std::to_string(start) + "}]}";
}
std::string squad_fault(const std::string& content) {
  try {
    parse_squad(content, "x.json");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::InvalidInput);
    return e.what();
  }
}

TEST(Squad, ReadsBothVersions) {
  const std::string content =
      squad(question("a", "Rome", 16) +
            ",\n   {\"id\": \"b\", \"question\": \"Why?\", \"is_impossible\": true, \"answers\": []}");
  const QuestionSet set = parse_squad(content, "x.json");
  ASSERT_EQ(set.questions.size(), 2u);
  EXPECT_EQ(set.contexts.at(0), "Caf\xc3\xa9 Roma is in Rome.");
  EXPECT_EQ(set.questions[0].answers.at(0).start, 16);
  EXPECT_TRUE(set.questions[1].answers.empty());
  EXPECT_EQ(question_line(content, set.questions[0]), 4);
  EXPECT_EQ(question_line(content, set.questions[1]), 5);
}

TEST(Squad, FaultsHaveALine) {
  EXPECT_NE(squad_fault(squad(question("a", "Rome", 17)))
                .find("x.json:4: answer 'Rome' does not stand at character 17"),
            std::string::npos);
  EXPECT_NE(squad_fault(squad(question("a", "Rome", -1))).find("x.json:4"), std::string::npos);
  EXPECT_NE(squad_fault(squad(question("a", "Rome", 16) + ",\n" + question("a", "Rome", 16)))
                .find("x.json:5: has id 'a', which another question has"),
            std::string::npos);
  EXPECT_NE(squad_fault(squad("{\"id\": \"a\", \"question\": \"?\", \"answers\": []}")).find("has no answer"),
            std::string::npos);
  EXPECT_NE(squad_fault(squad("{\"id\": 7}")).find("\"id\" is number, not text"), std::string::npos);
  EXPECT_NE(squad_fault(squad("")).find("has no questions"), std::string::npos);
  EXPECT_NE(squad_fault("{\"data\": 3}").find("\"data\" is number, not a list"), std::string::npos);
  EXPECT_NE(squad_fault("{}").find("has no \"data\""), std::string::npos);
  EXPECT_NE(squad_fault("{\n\"data\": [}").find("line 2"), std::string::npos);
  EXPECT_NE(squad_fault("{\n\"data\": [1e999]}").find("x.json:2: is not valid JSON"), std::string::npos);
}

TEST(JsonPlace, CountsLinesOverStringsAndNesting) {
  const std::string text = "{\"a\": \"x\\\"}\",\n \"b\" : [ {\"c\": [1, 2]} ,\n[ ] ,\n\n 7 ] }";
  EXPECT_EQ(json_line(text, {"a"}), 1);
  EXPECT_EQ(json_line(text, {"b"}), 2);
  EXPECT_EQ(json_line(text, {"b", std::size_t{1}}), 3);
  EXPECT_EQ(json_line(text, {"b", std::size_t{2}}), 5);
  EXPECT_EQ(json_line(text, {"b", std::size_t{9}}), 2);
  EXPECT_EQ(json_line(text, {"absent"}), 1);
}

// The values that the evaluation scripts of SQuAD give (transformers.data.metrics.squad_metrics has them
// too).
TEST(Answers, AreComparedAsSquadDoes) {
  const auto one = [](std::string_view answer) { return std::vector<std::string_view>{answer}; };
  EXPECT_EQ(normalized_answer("  The quick, brown-fox!  "), "quick brownfox");
  EXPECT_EQ(exact_match("the Rome.", one("rome")), 1);
  EXPECT_EQ(exact_match("Rome today", one("Rome")), 0);
  EXPECT_DOUBLE_EQ(answer_f1("Rome today", one("the Rome")), 2.0 / 3);
  EXPECT_DOUBLE_EQ(answer_f1("Rome Rome", one("Rome")), 2.0 / 3);
  EXPECT_EQ(answer_f1("Paris", one("Rome")), 0);
  EXPECT_DOUBLE_EQ(answer_f1("in Rome", std::vector<std::string_view>{"Paris", "Rome"}), 2.0 / 3);
  EXPECT_EQ(exact_match("", {}), 1);  // no answer
  EXPECT_EQ(answer_f1("Rome", {}), 0);
}

TEST(Answers, TheBestCandidateOfAllWindowsWins) {
  const std::vector<WindowAnswers> windows = {{{{3, 0, 4}, {2, 5, 9}}, 1}, {{{5, 5, 9}}, 6}};
  EXPECT_EQ(best_answer("Rome Bonn", windows, false), "Bonn");
  EXPECT_EQ(best_answer("Rome Bonn", windows, true), "Bonn");  // the lowest "no answer" counts, 1
  const std::vector<WindowAnswers> unsure = {{{{3, 0, 4}}, 4}};
  EXPECT_EQ(best_answer("Rome Bonn", unsure, true), "");
  EXPECT_EQ(best_answer("Rome Bonn", unsure, false), "Rome");
  EXPECT_EQ(best_answer("Rome Bonn", std::vector<WindowAnswers>{{}}, false), "");
}

}  // namespace
}  // namespace batchwright::data
