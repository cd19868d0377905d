#include <gtest/gtest.h>

#include "base/error.h"
#include "data/entities.h"
#include "data/tagged_rows.h"

namespace batchwright::data {
namespace {

std::string conll_fault(std::string_view content) {
  try {
    parse_conll(content, "x.conll");
    return "";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::InvalidInput);
    return e.what();
  }
}

// As conlleval prints it: "PER 0-1".
std::string entities(const std::vector<std::string_view>& tags) {
  std::string out;
  for (const Entity& entity : find_entities(tags)) {
    if (!out.empty()) out += ", ";
    out += entity.type + " " + std::to_string(entity.first) + "-" + std::to_string(entity.last);
  }
  return out;
}

TEST(Conll, ReadsSentencesOfAnyWidth) {
  const auto rows = parse_conll(
      "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-ORG\r\nrejects VBZ I-VP O\n\n\n# a "
      "comment\nPeter\tNNP\tI-NP\tB-PER\n",
      "x.conll");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].words, (std::vector<std::string>{"EU", "rejects"}));
  EXPECT_EQ(rows[0].tags, (std::vector<std::string>{"B-ORG", "O"}));
  EXPECT_EQ(rows[0].line, 3);
  EXPECT_EQ(rows[1].words, (std::vector<std::string>{"Peter"}));
  EXPECT_EQ(rows[1].line, 8);
}

TEST(Conll, AHashIsAWordWhenItIsTagged) {
  const auto rows = parse_conll("# O\nsign O\n\nlast B-X", "x.conll");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].words[0], "#");
  EXPECT_EQ(rows[1].tags[0], "B-X");
}

TEST(Conll, FaultsHaveALine) {
  EXPECT_NE(conll_fault("EU B-ORG\nrejects\n").find("x.conll:2: has the word 'rejects' and no tag"),
            std::string::npos);
  EXPECT_NE(
      conll_fault("EU NNP B-ORG\nrejects O\n").find("x.conll:2: has 2 columns; the lines before have 3"),
      std::string::npos);
  EXPECT_NE(conll_fault("EU B-ORG\n\nrejects VBZ\n").find("x.conll:3: has the tag 'VBZ'"), std::string::npos);
}

TEST(Conll, TagsFollowTheModelWhenItNamesThem) {
  const auto rows = parse_conll("EU B-ORG\nsaid O\n\nPeter B-PER\n", "x.conll");
  const LabelMap own = map_tags(rows, {}, "x.conll");
  EXPECT_EQ(own.names, (std::vector<std::string>{"B-ORG", "B-PER", "O"}));
  EXPECT_EQ(own.class_of_rows, (std::vector<std::int32_t>{0, 2, 1}));
  const LabelMap models = map_tags(rows, {"O", "B-PER", "B-ORG"}, "x.conll");
  EXPECT_EQ(models.class_of_rows, (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_EQ(map_tags(rows, {"LABEL_0", "LABEL_1"}, "x.conll").names, own.names);
  try {
    map_tags(rows, {"O", "B-ORG"}, "x.conll");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.subject(), "x.conll:4");
  }
}

// What seqeval 1.2.2's get_entities gives for the same tags; it reads no L and U.
TEST(Entities, AreThoseOfConlleval) {
  EXPECT_EQ(entities({"B-PER", "I-PER", "O", "B-LOC"}), "PER 0-1, LOC 3-3");
  EXPECT_EQ(entities({"I-PER", "I-PER", "O", "I-LOC"}), "PER 0-1, LOC 3-3");  // IOB1
  EXPECT_EQ(entities({"I-PER", "B-PER", "I-LOC"}), "PER 0-0, PER 1-1, LOC 2-2");
  EXPECT_EQ(entities({"O", "I-ORG", "I-ORG", "I-PER", "O"}), "ORG 1-2, PER 3-3");
  EXPECT_EQ(entities({"B-A", "I-A", "E-A", "S-B", "B-B", "E-B"}), "A 0-2, B 3-3, B 4-5");
  EXPECT_EQ(entities({"E-A", "E-A", "I-A"}), "A 0-0, A 1-1, A 2-2");
  EXPECT_EQ(entities({"B-A", "E-A", "I-A"}), "A 0-1, A 2-2");
  EXPECT_EQ(entities({"S-A", "I-A"}), "A 0-0, A 1-1");
  EXPECT_EQ(entities({"O", "E-A"}), "A 1-1");
  EXPECT_EQ(entities({"B-A", "L-A", "U-A"}), "A 0-1, A 2-2");
  EXPECT_EQ(entities({"O", "O"}), "");
  EXPECT_EQ(entities({}), "");
}

}  // namespace
}  // namespace batchwright::data
