// Every folder of tests/cases/check/{configs,configs_held_out,logs,logs_held_out} is a case: files of one run
// and expect.json {"verdict", "kinds"}. The folder is checked as a whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "check/kinds.h"
#include "check/report_text.h"
#include "check/together.h"
#include "paths.h"

namespace batchwright::check {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> cases() {
  std::vector<fs::path> found;
  for (const char* set : {"configs", "configs_held_out", "logs", "logs_held_out"}) {
    const fs::path root = fs::path(source_folder()) / "tests/cases/check" / set;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::directory_iterator(root)) {
      if (fs::exists(entry.path() / "expect.json")) found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<SourceFile> files_of(const fs::path& folder) {
  std::vector<SourceFile> files = gather_files({folder.string()}, "");
  std::erase_if(files, [](const SourceFile& f) { return f.path.ends_with("/expect.json"); });
  return files;
}

class CheckCase : public testing::TestWithParam<fs::path> {};

TEST_P(CheckCase, HasTheExpectedVerdict) {
  const Json expect = read_json_file(GetParam() / "expect.json");
  const std::vector<SourceFile> files = files_of(GetParam());
  const std::vector<FileReport> reports = check_together(files, {});
  std::set<std::string> mistakes;
  bool told = false;
  for (const FileReport& report : reports) {
    told = told || report.verdict != Verdict::CannotTell;
    for (const Finding& finding : report.findings) {
      if (finding.severity == Severity::Mistake) mistakes.insert(finding.kind);
    }
  }
  const std::string verdict = !mistakes.empty() ? "mistake" : told ? "ok" : "cannot_tell";
  EXPECT_EQ(verdict, expect["verdict"].get<std::string>()) << report_text(reports);
  const auto kinds = expect["kinds"].get<std::set<std::string>>();
  if (kinds.empty()) return;
  EXPECT_TRUE(std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
    return mistakes.contains(kind);
  })) << report_text(reports);
}

INSTANTIATE_TEST_SUITE_P(Cases, CheckCase, testing::ValuesIn(cases()), [](const auto& one) {
  return one.param.parent_path().filename().string() + "_" + one.param.filename().string();
});

// 64 of 8 x 4 needs two processes: a word, where no file tells how many there are.
TEST(CheckCases, NoteHowManyProcessesAStatedBatchNeeds) {
  const fs::path folder =
      fs::path(source_folder()) / "tests/cases/check/configs/batch_remark_two_processes_note";
  const std::vector<FileReport> reports = check_together(files_of(folder), {});
  ASSERT_EQ(reports.size(), 1u);
  ASSERT_EQ(reports[0].findings.size(), 1u) << report_text(reports);
  EXPECT_EQ(reports[0].findings[0].kind, "world_size_effective_batch");
  EXPECT_EQ(reports[0].findings[0].severity, Severity::Note);
  EXPECT_NE(reports[0].findings[0].what.find("2 processes"), std::string::npos);
}

// A kind without cases is not checked by anything.
TEST(CheckCases, CoverEveryConfigurationAndLogKind) {
  std::set<std::string> covered;
  for (const fs::path& folder : cases()) {
    const Json expect = read_json_file(folder / "expect.json");
    for (const Json& kind : expect["kinds"]) covered.insert(kind.get<std::string>());
  }
  for (const Kind& kind : all_kinds()) {
    const bool wanted = kind.severity == Severity::Mistake && (kind.where == Where::Config);
    EXPECT_TRUE(!wanted || covered.contains(std::string(kind.name))) << kind.name;
  }
}

}  // namespace
}  // namespace batchwright::check
