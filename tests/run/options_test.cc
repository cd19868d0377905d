#include "run/options.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace batchwright::run {
namespace {

TrainingOptions valid_options() {
  TrainingOptions options;
  options.effective_batch = 32;
  return options;
}

TEST(TrainingOptions, SurviveTheWayToTheEngineAndBack) {
  TrainingOptions options = valid_options();
  options.method = Method::Lora;
  options.lora.targets = {"query", "value"};
  options.lora.dropout = 0.125;
  options.steps = 50;
  options.schedule = Schedule::Cosine;
  options.model_dropout = 0.0;
  options.seed = 9007199254740993ull;  // not a double
  options.memory_limit_bytes = 900ll << 20;
  options.layout = "sorted";
  const Json written = to_json(options);
  EXPECT_EQ(to_json(training_options_from_json(parse_json(dump_line(written), "job"), "job")), written);
}

TEST(TrainingOptions, NameTheOptionThatIsOutOfRange) {
  const auto subject_of = [](auto change) {
    TrainingOptions options = valid_options();
    change(options);
    try {
      options.check();
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Usage);
      return e.subject();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(subject_of([](TrainingOptions&) {}), "accepted");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.effective_batch = 0; }), "--effective-batch");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.lora.dropout = 1; }), "--lora-dropout");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.layout = "spiral"; }), "--layout");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.steps = 0; }), "--steps");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.eval_fraction = 1; }), "--eval-fraction");
  EXPECT_EQ(subject_of([](TrainingOptions& o) { o.learning_rate = -1e-3; }), "--learning-rate");
}

TEST(ParseSplit, ReadsWhatAPersonWrites) {
  EXPECT_EQ(parse_split("8x4", "--split"), (Split{8, 4, 1}));
  EXPECT_EQ(parse_split("8x4x2", "--split").effective_batch(), 64);
  EXPECT_EQ(to_string(parse_split("8x4x2", "--split")), "8x4x2");
  for (const char* wrong : {"", "8", "8x", "x4", "8x4x2x1", "0x4", "-8x4", "8 x 4", "8x4.5", "8X4",
                            "9999999999999x2", "16777216x16777216"}) {
    EXPECT_THROW(parse_split(wrong, "--split"), Error) << wrong;
  }
}

TEST(EngineJob, RefusesASplitThatIsNotTheEffectiveBatch) {
  EngineJob job;
  job.mode = JobMode::Train;
  job.model_folder = "model";
  job.token_file = "tokens";
  job.split = {8, 4, 1};
  job.options = valid_options();
  EXPECT_EQ(to_json(engine_job_from_json(to_json(job), "job.json")), to_json(job));
  job.split.accumulation_steps = 5;
  EXPECT_THROW(engine_job_from_json(to_json(job), "job.json"), Error);
}

}  // namespace
}  // namespace batchwright::run
