#include "run/failure.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <string>

namespace batchwright::run {
namespace {

ExitStatus exited(int code) {
  ExitStatus status;
  status.code = code;
  return status;
}

ExitStatus ended_by(int signal) {
  ExitStatus status;
  status.signal = signal;
  return status;
}

TEST(ClassifyFailure, KnowsTheMessagesOfAllocatorsAndCollectives) {
  const auto outcome = [](const std::string& output) {
    return classify_failure(exited(1), "Traceback (most recent call last):\n  ...\n" + output + "\n", false)
        .outcome;
  };
  EXPECT_EQ(
      outcome("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
              "capacity of 14.75 GiB"),
      Outcome::OutOfMemory);
  EXPECT_EQ(
      outcome(
          "RuntimeError: [enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't allocate "
          "memory: you tried to allocate 4398046511104 bytes. Error code 12 (Cannot allocate memory)"),
      Outcome::OutOfMemory);
  EXPECT_EQ(
      outcome("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
      Outcome::OutOfMemory);
  EXPECT_EQ(outcome("terminate called after throwing an instance of 'std::bad_alloc'"), Outcome::OutOfMemory);
  EXPECT_EQ(
      outcome("[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: "
              "WorkNCCL(SeqNum=5)"),
      Outcome::TimedOut);
  EXPECT_EQ(outcome("ValueError: batch too odd"), Outcome::Crashed);
}

TEST(ClassifyFailure, ShowsTheLineThatExplains) {
  const Failure failure =
      classify_failure(exited(1), "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB\nbye\n", false);
  EXPECT_EQ(failure.reason, "torch.OutOfMemoryError: CUDA out of memory. Tried 2 GiB");
  EXPECT_EQ(classify_failure(exited(3), "a\nValueError: odd\n", false).reason,
            "exited with code 3; its last line: ValueError: odd");
}

TEST(ClassifyFailure, AKillIsOutOfMemoryOnlyWhenTheKernelCountsOne) {
  EXPECT_EQ(classify_failure(ended_by(SIGKILL), "", true).outcome, Outcome::OutOfMemory);
  EXPECT_EQ(classify_failure(ended_by(SIGKILL), "", false).outcome, Outcome::Crashed);
  EXPECT_EQ(classify_failure(ended_by(SIGSEGV), "", true).outcome, Outcome::Crashed);
}

}  // namespace
}  // namespace batchwright::run
