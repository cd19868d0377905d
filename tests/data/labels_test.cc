#include "data/labels.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/files.h"

namespace batchwright::data {
namespace {

using Classes = std::vector<std::int32_t>;
using Names = std::vector<std::string>;

TextRows rows_with(const Names& labels) {
  TextRows rows;
  for (const std::string& label : labels) {
    rows.rows.push_back({.text = "t", .text_pair = "", .label = label, .line = std::ssize(rows.rows) + 2});
  }
  return rows;
}

LabelMap map(const Names& labels, const Names& model = {}) {
  return map_labels(rows_with(labels), model, "x.csv");
}

std::string fault(const Names& labels, const Names& model = {}) {
  try {
    map(labels, model);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::InvalidInput);
    return e.what();
  }
  return "";
}

TEST(Labels, WholeNumbersKeepTheirOrder) {
  EXPECT_EQ(map({"1", "0", "10", "2", "3", "4", "5", "6", "7", "8", "9"}).class_of_rows,
            (Classes{1, 0, 10, 2, 3, 4, 5, 6, 7, 8, 9}));
  const LabelMap stars = map({"5", "1", "3", "2", "4"});
  EXPECT_EQ(stars.names, (Names{"1", "2", "3", "4", "5"}));
  EXPECT_EQ(stars.class_of_rows, (Classes{4, 0, 2, 1, 3}));
}

TEST(Labels, NamesAreSorted) {
  const LabelMap names = map({"neutral", "bad", "good", "bad"});
  EXPECT_EQ(names.names, (Names{"bad", "good", "neutral"}));
  EXPECT_EQ(names.class_of_rows, (Classes{2, 0, 1, 0}));
}

TEST(Labels, TheModelsOrderStands) {
  const Names model = {"POSITIVE", "NEGATIVE", "OTHER"};
  EXPECT_EQ(map({"NEGATIVE", "POSITIVE"}, model).class_of_rows, (Classes{1, 0}));
  EXPECT_EQ(map({"NEGATIVE", "POSITIVE"}, model).names, model);
  EXPECT_EQ(map({"1", "0"}, model).names, model);
  // A new task for an old model: none of its names are used.
  EXPECT_EQ(map({"spam", "ham"}, model).names, (Names{"ham", "spam"}));
  // Names that nobody chose do not bind.
  EXPECT_EQ(map({"0", "1", "2"}, {"LABEL_0", "LABEL_1"}).names, (Names{"0", "1", "2"}));
  EXPECT_EQ(map({"0", "1"}, {"LABEL_0", "LABEL_1", "LABEL_2"}).names.size(), 3u);
}

TEST(Labels, OutsideTheClassesNamesTheLine) {
  EXPECT_NE(fault({"0", "1", "7"}).find("x.csv:4: label '7' is outside the classes 0 to 1"),
            std::string::npos);
  EXPECT_NE(fault({"0", "-1", "1"}).find("x.csv:3: label '-1'"), std::string::npos);
  EXPECT_NE(fault({"7", "9"}).find("x.csv:2"), std::string::npos);
  EXPECT_NE(fault({"0", "2"}, {"no", "yes"}).find("x.csv:3: label '2' is outside the classes of the model"),
            std::string::npos);
  EXPECT_NE(fault({"no", "maybe"}, {"no", "yes"}).find("x.csv:3: label 'maybe'"), std::string::npos);
}

TEST(Labels, MixedKindsOneClassAndIdentifiersAreRefused) {
  EXPECT_NE(fault({"0", "1", "good"}).find("x.csv:4"), std::string::npos);
  EXPECT_NE(fault({"good", "1"}).find("x.csv:3"), std::string::npos);
  EXPECT_NE(fault({"same", "same"}).find("one label only"), std::string::npos);
  Names identifiers;
  for (int i = 0; i < 300; ++i) identifiers.push_back("row" + std::to_string(i));
  EXPECT_NE(fault(identifiers).find("300 different labels"), std::string::npos);
}

TEST(Labels, ModelNamesComeFromConfig) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("batchwright_labels_" + std::to_string(::getpid()));
  const auto names = [&](std::string_view config) {
    write_file_atomic(folder / "config.json", config);
    return model_label_names(folder);
  };
  EXPECT_TRUE(model_label_names(folder).empty());
  EXPECT_EQ(names(R"({"id2label": {"1": "b", "0": "a"}})"), (Names{"a", "b"}));
  EXPECT_TRUE(names(R"({"id2label": {"0": "a", "2": "b"}})").empty());
  EXPECT_TRUE(names(R"({"id2label": {"0": "a", "1": 5}})").empty());
  EXPECT_TRUE(names(R"({"id2label": {"0": "LABEL_0"}})").empty());
  EXPECT_TRUE(names(R"({"hidden_size": 384})").empty());
  EXPECT_THROW(names("{"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace batchwright::data
