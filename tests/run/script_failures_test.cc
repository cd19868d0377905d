#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/process.h"
#include "paths.h"
#include "run/memory_group.h"
#include "run/script_runner.h"
#include "run/test_worker.h"

namespace batchwright::run {
namespace {

// Real failures of a real script: what the trial's outcome says, and what is left behind.
class ScriptFailures : public WithTorch {
 protected:
  Trial fail(const std::string& how, Patience patience = {120, 120, 60, 10}) {
    settings.script.words.insert(
        settings.script.words.end(),
        {source_folder() + "/tests/run/failing_script.py", how, "{micro}", "{accum}"});
    settings.script.words.insert(settings.script.words.end(), more.begin(), more.end());
    settings.scratch_root = folder / "scratch";
    settings.log_file = folder / "worker.log";
    settings.hook_folder = source_folder() + "/python/batchwright/hook";
    TrialRequest request;
    request.split = {4, 2, 1};
    request.steps = 50;
    return ScriptRunner(settings, nullptr, {}, patience).run(request);
  }
  void expect(const Trial& trial, Outcome outcome, const std::string& reason) {
    EXPECT_EQ(trial.outcome, outcome) << trial.reason;
    EXPECT_NE(trial.reason.find(reason), std::string::npos) << trial.reason;
  }
  std::string log() const { return read_file(folder / "worker.log"); }

  TemporaryFolder folder;
  ScriptSettings settings = [] {
    ScriptSettings result;
    result.script.words = {python_for_tests()};
    return result;
  }();
  std::vector<std::string> more;
};

TEST_F(ScriptFailures, TheCpuAllocator) {
  expect(fail("cpu_allocator"), Outcome::OutOfMemory, "CPU allocator");
}
TEST_F(ScriptFailures, TheCudaAllocator) {
  expect(fail("cuda_allocator"), Outcome::OutOfMemory, "CUDA out of memory. Tried to allocate 2.00 GiB");
}
TEST_F(ScriptFailures, Cublas) { expect(fail("cublas"), Outcome::OutOfMemory, "cuBLAS"); }
TEST_F(ScriptFailures, Cudnn) { expect(fail("cudnn"), Outcome::OutOfMemory, "cuDNN"); }
TEST_F(ScriptFailures, ATracebackShowsItsException) {
  expect(fail("traceback"), Outcome::Crashed, "KeyError: 'no such column'");
}
TEST_F(ScriptFailures, AScriptThatAsksForInput) { expect(fail("input"), Outcome::Crashed, "asks for input"); }
TEST_F(ScriptFailures, ASegmentationFault) { expect(fail("segfault"), Outcome::Crashed, "SIGSEGV"); }
TEST_F(ScriptFailures, AHang) { expect(fail("hang", {120, 1, 1, 1}), Outcome::TimedOut, "no step for 1"); }

TEST_F(ScriptFailures, AGlooCollectiveThatTimesOut) {
  settings.script.words = {python_for_tests(), "-m", "torch.distributed.run", "--standalone",
                           "--nproc_per_node", "2"};
  expect(fail("gloo"), Outcome::TimedOut, "timed out");
}

// A control group kills, the address space refuses: out of memory either way.
TEST_F(ScriptFailures, TheMemoryLimit) {
  settings.memory_limit_bytes = 3ll << 30;
  more = {"4000"};
  const bool group = MemoryGroup::create(1 << 30) != nullptr;
  expect(fail("limit"), Outcome::OutOfMemory, group ? "out-of-memory killer" : "MemoryError");
}

TEST_F(ScriptFailures, NothingIsLeftRunningOrLying) {
  const Trial trial = fail("litter", {120, 2, 2, 1});
  EXPECT_EQ(trial.outcome, Outcome::TimedOut) << trial.reason;
  const std::string text = log();
  const std::size_t at = text.find("LITTER ");
  ASSERT_NE(at, std::string::npos) << text;
  std::istringstream words(text.substr(at + 7));
  pid_t child = 0;
  std::string memory, temporary;
  words >> child >> memory >> temporary;
  EXPECT_FALSE(is_running(child));
  EXPECT_FALSE(std::filesystem::exists(memory)) << memory;
  EXPECT_FALSE(std::filesystem::exists(temporary)) << temporary;
  EXPECT_TRUE(std::filesystem::is_empty(folder / "scratch"));
}

}  // namespace
}  // namespace batchwright::run
