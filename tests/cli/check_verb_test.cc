#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json.h"
#include "base/process.h"
#include "base/random.h"
#include "check/kinds.h"
#include "check/together.h"
#include "paths.h"
#include "run/test_worker.h"

namespace batchwright::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWrong =
    "torchrun --nproc_per_node=4 train.py --per_device_train_batch_size 8 \\\n"
    "  --gradient_accumulation_steps $((100 / 32)) --learning_rate 1e-5\n";
constexpr const char* kRight =
    "torchrun --nproc_per_node=4 train.py --per_device_train_batch_size 8 --gradient_accumulation_steps 4\n";

class CheckVerb : public testing::Test {
 protected:
  // Standard output and error together, and the exit code.
  CapturedOutput check(const std::vector<std::string>& words) const {
    ProcessOptions options;
    options.command = {programs_folder() + "/batchwright", "check"};
    options.command.insert(options.command.end(), words.begin(), words.end());
    options.working_folder = folder.path();
    return run_captured(options, std::chrono::seconds(60));
  }
  void write(const std::string& name, const std::string& content) const {
    fs::create_directories((folder / name).parent_path());
    write_file_atomic(folder / name, content);
  }
  static Json document(const CapturedOutput& output) { return parse_json(output.text, "standard output"); }

  run::TemporaryFolder folder;
};

TEST_F(CheckVerb, ExitsWithOneForAMistakeAndZeroForNone) {
  write("wrong.sh", kWrong);
  write("right.sh", kRight);
  EXPECT_EQ(check({"wrong.sh"}).status.code, 1);
  EXPECT_EQ(check({"right.sh"}).status.code, 0);
}

TEST_F(CheckVerb, RefusesWrongUse) {
  EXPECT_EQ(check({}).status.code, 2);
  EXPECT_EQ(check({"no-such-file.yaml"}).status.code, 2);
  write("right.sh", kRight);
  EXPECT_EQ(check({"right.sh", "--json", "--sarif"}).status.code, 2);
  const CapturedOutput unknown = check({"--explain", "list"});
  EXPECT_EQ(unknown.status.code, 2);
  EXPECT_NE(unknown.text.find("tail_leak, "), std::string::npos) << unknown.text;
}

TEST_F(CheckVerb, FindsNoMistakeInTheExamples) {
  const CapturedOutput output = check({source_folder() + "/examples"});
  EXPECT_EQ(output.status.code, 0) << output.text;
}

TEST_F(CheckVerb, PrintsLinesAsCompilersDo) {
  write("wrong.sh", kWrong);
  const std::string text = check({"wrong.sh"}).text;
  EXPECT_NE(text.find("wrong.sh:2: mistake not_divisible: "), std::string::npos) << text;
  EXPECT_NE(text.find("fix: "), std::string::npos);
}

TEST_F(CheckVerb, ShowsTheCorrectedLineAsADiff) {
  write("args.yaml", "output_dir: o\nper_device_train_batch_size: 2\nmax_steps: 100\nwarmup_steps: 500\n");
  const std::string text = check({"args.yaml"}).text;
  EXPECT_NE(text.find("-warmup_steps: 500\n"), std::string::npos) << text;
  EXPECT_NE(text.find("+warmup_steps: 5\n"), std::string::npos) << text;
}

TEST_F(CheckVerb, JsonHasTheDocumentedFields) {
  write("case/wrong.sh", kWrong);
  const Json result = document(check({"case", "--json"}));
  EXPECT_EQ(result["version"], 1);
  ASSERT_EQ(result["files"].size(), 1u);
  const Json& file = result["files"][0];
  EXPECT_TRUE(file["path"].get<std::string>().ends_with("wrong.sh"));
  EXPECT_EQ(file["verdict"], "mistake");
  ASSERT_FALSE(file["findings"].empty());
  for (const char* field :
       {"kind", "severity", "line", "what", "consequence", "fix", "affects", "effective_weights"})
    EXPECT_TRUE(file["findings"][0].contains(field)) << field;
  EXPECT_EQ(file["findings"][0]["kind"], "not_divisible");
  EXPECT_EQ(file["findings"][0]["line"], 2);
}

TEST_F(CheckVerb, SarifNamesRulesAndPlaces) {
  write("wrong.sh", kWrong);
  const Json result = document(check({"wrong.sh", "--sarif"}));
  EXPECT_EQ(result["version"], "2.1.0");
  const Json& run = result["runs"][0];
  EXPECT_EQ(run["tool"]["driver"]["name"], "batchwright");
  const Json& finding = run["results"][0];
  EXPECT_EQ(finding["ruleId"], "not_divisible");
  EXPECT_EQ(finding["level"], "error");
  EXPECT_EQ(finding["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "wrong.sh");
  EXPECT_EQ(finding["locations"][0]["physicalLocation"]["region"]["startLine"], 2);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "not_divisible");
}

TEST_F(CheckVerb, CommentsSilenceFindings) {
  const std::string wrong = kWrong;
  write("kind.sh", "# batchwright: ignore-file[not_divisible]\n" + wrong);
  EXPECT_EQ(check({"kind.sh"}).status.code, 0);
  write("other.sh", "# batchwright: ignore-file[two_places]\n" + wrong);
  EXPECT_EQ(check({"other.sh"}).status.code, 1);
  write("above.yaml",
        "output_dir: o\nper_device_train_batch_size: 2\nmax_steps: 100\n# batchwright: ignore\nwarmup_steps: "
        "500\n");
  EXPECT_EQ(check({"above.yaml"}).status.code, 0);
  write("same.yaml",
        "output_dir: o\nmax_steps: 100\nwarmup_steps: 500  # batchwright: ignore[warmup_gt_total]\n");
  EXPECT_EQ(check({"same.yaml"}).status.code, 0);
}

TEST_F(CheckVerb, StrictCountsWhatCannotBeTold) {
  write("notes.yaml", "title: holiday\n");
  EXPECT_EQ(check({"notes.yaml"}).status.code, 0);
  EXPECT_EQ(check({"notes.yaml", "--strict"}).status.code, 1);
  EXPECT_EQ(document(check({"notes.yaml", "--json"}))["files"][0]["verdict"], "cannot_tell");
}

TEST_F(CheckVerb, SeparateFilesAreNotCompared) {
  write("ds.json",
        R"({"gradient_accumulation_steps": 8, "gradient_clipping": 1.0, "zero_optimization": {"stage": 2}})");
  write("args.json",
        R"({"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "deepspeed": "ds.json"})");
  EXPECT_EQ(check({"ds.json", "args.json"}).status.code, 1);
  EXPECT_EQ(check({"ds.json", "args.json", "--separate"}).status.code, 0);
}

TEST_F(CheckVerb, ReadsTheStandardInput) {
  write("in.sh", kWrong);
  ProcessOptions options;
  options.command = {"sh", "-c", programs_folder() + "/batchwright check - --json < in.sh"};
  options.working_folder = folder.path();
  const CapturedOutput output = run_captured(options, std::chrono::seconds(60));
  EXPECT_EQ(output.status.code, 1) << output.text;
  EXPECT_EQ(document(output)["files"][0]["path"], "-");
}

TEST_F(CheckVerb, ExplainsEveryKind) {
  for (const check::Kind& kind : check::all_kinds()) {
    const CapturedOutput output = check({"--explain", std::string(kind.name)});
    EXPECT_EQ(output.status.code, 0) << kind.name;
    EXPECT_TRUE(output.text.starts_with("## " + std::string(kind.name) + "\n")) << output.text;
    EXPECT_NE(output.text.find("\n    "), std::string::npos) << kind.name << " shows no right code";
  }
}

// Whatever the bytes, an answer comes back: every case cut short at places and with bytes changed, under each
// name that selects another reader.
TEST(CheckBytes, AnyInputIsAnswered) {
  std::vector<std::string> texts;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(source_folder()) / "tests/cases/check")) {
    if (entry.is_regular_file() && entry.file_size() < 20'000) texts.push_back(read_file(entry.path()));
  }
  ASSERT_GT(texts.size(), 100u);
  RandomStream random(1, RandomUse::Test);
  const std::vector<std::string> names = {"x.json", "x.yaml",  "x.sh",  "x.py", "x.ipynb",
                                          "x.log",  "x.jsonl", "x.csv", "x.md", "x"};
  for (int round = 0; round < 1500; ++round) {
    std::string text = texts[random.below(texts.size())];
    if (random.below(3) == 0) text.resize(random.below(text.size() + 1));
    for (std::uint64_t change = random.below(6); change > 0 && !text.empty(); --change)
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    check::SourceFile file{.path = names[random.below(names.size())],
                           .text = text,
                           .kind = check::FileKind::Other,
                           .named = true,
                           .problem = ""};
    file.kind = check::kind_of(file.path, file.text);
    EXPECT_EQ(check::check_together({file}, {}).size(), 1u);
  }
}

TEST(CheckBytes, DeepAndLongInputIsAnswered) {
  const std::vector<std::pair<std::string, std::string>> inputs = {
      {"deep.json", std::string(100'000, '[')},
      {"deep.yaml", std::string(50'000, '{')},
      {"dashes.yaml",
       [] {
         std::string s;
         for (int i = 0; i < 20'000; ++i) s += "- ";
         return s;
       }()},
      {"bomb.yaml",
       "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d "
       "[*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n"},
      {"long.log", std::string(10'000'000, 'x')},
      {"brackets.py",
       [] {
         std::string s;
         for (int i = 0; i < 100'000; ++i) s += "a = {\n";
         return s + "train_batch_size";
       }()},
      {"dollars.sh",
       [] {
         std::string s;
         for (int i = 0; i < 100'000; ++i) s += "$(((";
         return s;
       }()},
      {"grow.sh",
       [] {
         std::string s = "A=xx\n";
         for (int i = 0; i < 60; ++i) s += "A=$A$A\n";
         return s + "torchrun $A\n";
       }()},
      {"colons.log", [] {
         std::string s;
         for (int i = 0; i < 200'000; ++i) s += "loss: ";
         return s;
       }()}};
  for (const auto& [name, text] : inputs) {
    check::SourceFile file{
        .path = name, .text = text, .kind = check::kind_of(name, text), .named = true, .problem = ""};
    EXPECT_EQ(check::check_together({file}, {}).size(), 1u) << name;
  }
}

}  // namespace
}  // namespace batchwright::cli
