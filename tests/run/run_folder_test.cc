#include "run/run_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/error.h"
#include "run/test_worker.h"

namespace batchwright::run {
namespace {

Trial measured(std::int64_t micro, std::int64_t accum) {
  Trial trial;
  trial.request.split = {micro, accum, 1};
  trial.request.steps = 2;
  trial.request.warmup_steps = 1;
  trial.request.first_step = 5;
  trial.outcome = Outcome::Measured;
  trial.steps = {{6, 0.5, 900, 1000}, {7, 0.25, 800, 1000}};
  trial.phases = {{"forward", 0.1}};
  trial.peak_bytes = 1ll << 33;
  trial.observed_micro_batch = micro;
  trial.observed_accumulation_steps = accum;
  trial.wall_seconds = 1.5;
  return trial;
}

TEST(Trial, ReadsBackAsItWasWritten) {
  Trial trial = measured(8, 4);
  EXPECT_EQ(to_json(trial_from_json(to_json(trial), "test")), to_json(trial));
  Trial failed;
  failed.request.batch = "longest";
  failed.outcome = Outcome::OutOfMemory;
  failed.reason = "too large";
  EXPECT_EQ(to_json(trial_from_json(to_json(failed), "test")), to_json(failed));
  EXPECT_THROW(trial_from_json(parse_json(R"({"outcome":"measured"})", "test"), "test"), Error);
}

TEST(RunFolder, ContinuesTheSameRequestAndDropsATornLine) {
  const TemporaryFolder folder;
  const Json request = {{"effective_batch", 32}, {"options", {{"seed", 0}}}};
  {
    RunFolder run(folder / "run", request);
    EXPECT_EQ(run.opening(), RunFolder::Opening::Created);
    run.append(measured(8, 4));
    run.append(measured(4, 8));
  }
  std::ofstream(folder / "run" / "trials.jsonl", std::ios::app) << R"({"micro_batch": 2, "accum)";
  RunFolder again(folder / "run", request);
  EXPECT_EQ(again.opening(), RunFolder::Opening::Continued);
  ASSERT_EQ(again.trials().size(), 2u);
  EXPECT_EQ(again.trials()[1].request.split.micro_batch, 4);
  again.append(measured(2, 16));
  EXPECT_EQ(RunFolder::open(folder / "run").trials().size(), 3u);
}

// explain reads the device there, and with it finds the machine's calibration.
TEST(RunFolder, OpensWithTheFactsThatTheRunLearnt) {
  const TemporaryFolder folder;
  RunFolder(folder / "run", {{"effective_batch", 32}}).set_facts({{"device", "cpu, 2 threads"}});
  EXPECT_EQ(RunFolder::open(folder / "run").facts(), Json({{"device", "cpu, 2 threads"}}));
  EXPECT_EQ(RunFolder(folder / "run", {{"effective_batch", 32}}).facts(),
            Json({{"device", "cpu, 2 threads"}}));
}

TEST(RunFolder, RefusesAnotherRequestAndSaysWhatDiffers) {
  const TemporaryFolder folder;
  RunFolder(folder / "run", {{"effective_batch", 32}, {"options", {{"seed", 0}, {"clip", 1.0}}}})
      .append(measured(8, 4));
  try {
    RunFolder(folder / "run", {{"effective_batch", 32}, {"options", {{"seed", 1}, {"clip", 1.0}}}});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(exit_code(e.kind()), 2);
    EXPECT_NE(e.message().find("differs in: seed"), std::string::npos) << e.what();
    EXPECT_NE(e.hint().find("--overwrite"), std::string::npos);
  }
  EXPECT_EQ(RunFolder::open(folder / "run").trials().size(), 1u);
  RunFolder replaced(folder / "run", {{"effective_batch", 64}}, true);
  EXPECT_TRUE(replaced.trials().empty());
  EXPECT_TRUE(RunFolder::open(folder / "run").trials().empty());
}

TEST(RunFolder, NeverWritesIntoSomeoneElsesFolder) {
  const TemporaryFolder folder;
  std::ofstream(folder / "thesis.tex") << "mine";
  EXPECT_THROW(RunFolder(folder.path(), Json::object()), Error);
  EXPECT_THROW(RunFolder(folder.path(), Json::object(), true), Error);
  EXPECT_THROW(RunFolder(folder / "thesis.tex", Json::object()), Error);
  EXPECT_FALSE(std::filesystem::exists(folder / "run.json"));
}

TEST(RunFolder, WhatIsNotARunIsNamed) {
  const TemporaryFolder folder;
  EXPECT_THROW(RunFolder::open(folder / "absent"), Error);
  EXPECT_THROW(RunFolder::open(folder.path()), Error);
  std::ofstream(folder / "run.json") << "{\"version\": 2}";
  EXPECT_THROW(RunFolder::open(folder.path()), Error);
}

TEST(UnusedFolder, CountsUp) {
  const TemporaryFolder folder;
  EXPECT_EQ(unused_folder(folder / "run"), folder / "run");
  std::filesystem::create_directory(folder / "run");
  EXPECT_EQ(unused_folder(folder / "run"), folder / "run-2");
}

}  // namespace
}  // namespace batchwright::run
