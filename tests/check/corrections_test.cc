#include "check/corrections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "check/loops.h"
#include "check/report_json.h"
#include "check/report_text.h"
#include "paths.h"

namespace batchwright::check {
namespace {

namespace fs = std::filesystem;

std::string loop_case(const std::string& name) {
  return read_file(fs::path(source_folder()) / "tests/cases/check/loops" / (name + ".py"));
}

// Loops whose mistake a few changed lines mend: with them the file is right.
class MendedLoop : public testing::TestWithParam<const char*> {};

TEST_P(MendedLoop, IsRightAfterTheCorrection) {
  const std::string source = loop_case(GetParam());
  const FileReport report = check_python(source, "loop.py");
  ASSERT_EQ(report.verdict, Verdict::Mistake);
  std::string mended = source;
  for (const Finding& finding : report.findings) {
    if (finding.severity == Severity::Note) continue;
    ASSERT_FALSE(finding.edits.empty()) << finding.kind << ":" << finding.line;
    mended = apply_edits(mended, finding.edits);
  }
  EXPECT_NE(mended, source);
  EXPECT_EQ(check_python(mended, "loop.py").verdict, Verdict::Ok) << mended;
}

INSTANTIATE_TEST_SUITE_P(All, MendedLoop,
                         testing::Values("plain_no_division", "plain_off_by_one", "plain_leak",
                                         "plain_zero_in_window", "plain_double", "amp_clip_before_unscale",
                                         "amp_clip_each", "divided_after_backward", "lesson_no_division",
                                         "lesson_missing_zero_grad", "lesson_clip_scaled",
                                         "lesson_schedule_per_micro_batch", "lesson_zero_every_micro_batch",
                                         "one_cycle_units", "field_golf_scale_forgotten",
                                         "found_cell_fabric_index_zero", "found_accelerate_by_hand_sum",
                                         "found_mini_llm_epoch_leak", "field_mmimdb_list_of_divided"));

TEST(Corrections, NeverLeaveTheMistakeTheyAreFor) {
  std::size_t mistakes = 0, mended = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(source_folder()) / "tests/cases/check/loops")) {
    if (entry.path().extension() != ".py") continue;
    const std::string source = read_file(entry.path());
    const FileReport report = check_python(source, "loop.py");
    for (const Finding& finding : report.findings) {
      if (finding.severity == Severity::Note) continue;
      ++mistakes;
      if (finding.edits.empty()) continue;
      ++mended;
      const FileReport after = check_python(apply_edits(source, finding.edits), "loop.py");
      for (const Finding& left : after.findings)
        EXPECT_TRUE(left.severity == Severity::Note || left.kind != finding.kind)
            << entry.path() << " " << left.kind;
    }
  }
  EXPECT_GE(mended * 3, mistakes) << mended << " of " << mistakes << " have a correction";
}

TEST(Corrections, AreWrittenAsADiffInEveryForm) {
  FileReport report = check_python(loop_case("lesson_missing_zero_grad"), "a loop.py");
  report.path = "a loop.py";
  const std::string text = report_text({report});
  EXPECT_NE(text.find("\n    @@ line "), std::string::npos) << text;
  EXPECT_NE(text.find("\n    +"), std::string::npos) << text;
  const Json json = report_json({report});
  bool shown = false;
  for (const Json& finding : json["files"][0]["findings"]) shown = shown || finding.contains("diff");
  EXPECT_TRUE(shown) << json.dump();
  const Json sarif = report_sarif({report});
  bool fixed = false;
  for (const Json& result : sarif["runs"][0]["results"]) {
    if (!result.contains("fixes")) continue;
    fixed = true;
    const Json& change = result["fixes"][0]["artifactChanges"][0];
    EXPECT_EQ(change["artifactLocation"]["uri"], "a%20loop.py");
    EXPECT_GT(change["replacements"][0]["deletedRegion"]["startLine"].get<int>(), 0);
  }
  EXPECT_TRUE(fixed) << sarif.dump();
}

TEST(Corrections, KeepALastLineWithoutItsEnd) {
  EXPECT_EQ(apply_edits("a\nb", {}), "a\nb");
  EXPECT_EQ(apply_edits("a\nb\n", {{1, "a", {"c", "d"}}}), "c\nd\nb\n");
  EXPECT_EQ(apply_edits("a\nb\n", {{2, "b", {}}}), "a\n");
}

}  // namespace
}  // namespace batchwright::check
