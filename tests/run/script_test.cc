#include "run/script.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "run/test_worker.h"

namespace batchwright::run {
namespace {

PlaceholderValues values(const std::filesystem::path& scratch = "/tmp/s") { return {{8, 4, 2}, scratch, 10}; }

std::string refusal_of(const ScriptCommand& script) {
  try {
    check_script(script);
  } catch (const Error& e) {
    EXPECT_EQ(exit_code(e.kind()), 2);
    return e.what();
  }
  return "";
}

TEST(FillIn, ReplacesEveryPlaceholderAndLeavesOtherBraces) {
  EXPECT_EQ(fill_in("{micro}x{accum}x{devices}={effective} {scratch}/{other} {\"a\":{steps}}", values()),
            "8x4x2=64 /tmp/s/{other} {\"a\":10}");
}

TEST(CheckScript, NeedsAMicroBatchSomewhere) {
  EXPECT_NE(refusal_of({}).find("needs a command"), std::string::npos);
  EXPECT_NE(refusal_of({.words = {"python", "train.py"}}).find("no {micro}"), std::string::npos);
  EXPECT_EQ(refusal_of({.words = {"python", "train.py", "--bs={micro}"}}), "");
  ::setenv("TEST_BATCH", "{micro}", 1);
  EXPECT_EQ(refusal_of({.words = {"python", "train.py"}}), "");
  EXPECT_EQ(prepare_invocation({.words = {"x"}}, values()).environment.at("TEST_BATCH"), "8");
  ::unsetenv("TEST_BATCH");
}

TEST(CheckScript, RefusesToWriteIntoAFolderThatHoldsSomething) {
  const TemporaryFolder folder;
  const std::string used = folder.path().string();
  std::ofstream(folder / "checkpoint.bin") << "a week of work";
  std::ofstream(folder / "train.yaml") << "trainer:\n  output_dir: " << used << "\n  batch: 8\n";
  const std::string config = (folder / "train.yaml").string();
  const auto with = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"python", "train.py", "{micro}"});
    return ScriptCommand{.words = words};
  };
  for (const auto& words : std::vector<std::vector<std::string>>{{"--output_dir", used},
                                                                 {"--out", used},
                                                                 {"--save-to=" + used},
                                                                 {"--output-dir=" + used},
                                                                 {"hydra.run.out_dir=" + used},
                                                                 {"-o", used},
                                                                 {"--config", config},
                                                                 {"--config=" + config}}) {
    const std::string refusal = refusal_of(with(words));
    EXPECT_NE(refusal.find("has something in it"), std::string::npos) << words[0];
    EXPECT_NE(refusal.find("{scratch}"), std::string::npos) << refusal;
  }
  EXPECT_EQ(refusal_of(with({"--output_dir", "{scratch}"})), "");
  EXPECT_EQ(refusal_of(with({"--output_dir", used + "/absent"})), "");
  ScriptCommand edited = with({"--config", config});
  edited.edits = {{config, "trainer.output_dir", "{scratch}"}};
  EXPECT_EQ(refusal_of(edited), "");
}

TEST(WithValue, ChangesOneKeyOfYamlAndJson) {
  EXPECT_EQ(with_value("a: 1\nb:\n  c: 2\n", "b.c", "8", "x.yaml"), "a: 1\nb:\n  c: 8\n");
  const Json changed =
      parse_json(with_value(R"({"train": {"batch": 4, "name": "x: y", "deep": [1, {"z": null}]}})",
                            "train.name", "other", "x.json"),
                 "test");
  EXPECT_EQ(changed.at("train").at("name"), "other");
  EXPECT_THROW(with_value("a: 1\n", "b", "8", "x.yaml"), Error);
  EXPECT_THROW(with_value("a: 1\n", "a.b", "8", "x.yaml"), Error);
  EXPECT_THROW(with_value("a: [\n", "a", "8", "x.yaml"), Error);
}

TEST(PrepareInvocation, WritesEditedCopiesIntoTheScratchFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder / "train.yaml") << "batch: 1\naccum: 1\n";
  const std::string config = (folder / "train.yaml").string();
  const ScriptCommand script{.words = {"train", "--config=" + config},
                             .edits = {{config, "batch", "{micro}"}, {config, "accum", "{accum}"}},
                             .steps_argument = "--max_steps"};
  const ScriptInvocation invocation = prepare_invocation(script, values(folder / "scratch"));
  ASSERT_EQ(invocation.words.size(), 4u);
  EXPECT_EQ(invocation.words[2], "--max_steps");
  EXPECT_EQ(invocation.words[3], "10");
  const std::string copy = invocation.words[1].substr(9);
  EXPECT_EQ(read_file(copy), "batch: 8\naccum: 4\n");
  EXPECT_EQ(read_file(config), "batch: 1\naccum: 1\n");
  EXPECT_EQ(invocation.environment.at("WANDB_MODE"), "disabled");
  EXPECT_FALSE(
      prepare_invocation({.words = {"x"}, .edits = {}, .steps_argument = "", .online = true}, values())
          .environment.contains("HF_HUB_OFFLINE"));
}

}  // namespace
}  // namespace batchwright::run
