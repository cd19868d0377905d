#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "base/files.h"
#include "paths.h"

namespace batchwright {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds kLong{20000};

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.command = {"/bin/sh", "-c", script};
  options.grace = milliseconds(300);
  return options;
}

// Alive and not a zombie that waits for its parent.
bool is_running(pid_t id) {
  std::ifstream stat("/proc/" + std::to_string(id) + "/stat");
  std::string text;
  std::getline(stat, text);
  const auto at = text.rfind(')');
  return at != std::string::npos && text.size() > at + 2 && text[at + 2] != 'Z';
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/batchwright-test-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

// A file that the test waits for: the state it names has been reached.
std::string wait_for_file(const std::filesystem::path& path) {
  for (int i = 0; i < 2000; ++i) {
    if (std::filesystem::exists(path)) {
      const std::string text = read_file(path);
      if (!text.empty() && text.back() == '\n') return text;
    }
    ::usleep(5000);
  }
  ADD_FAILURE() << path << " did not appear";
  return "";
}

TEST(ChildProcess, ReportsHowACommandEnded) {
  EXPECT_EQ(run_captured(shell("exit 3"), kLong).status.code, 3);
  EXPECT_EQ(to_string(run_captured(shell("kill -SEGV $$"), kLong).status), "was ended by SIGSEGV");
  EXPECT_TRUE(run_captured(shell("true"), kLong).status.succeeded());
}

TEST(ChildProcess, GivesOutputEnvironmentAndFolder) {
  ProcessOptions options = shell("echo $COLOUR; pwd; echo oops >&2; echo ${HOME-unset}");
  options.environment = {{"COLOUR", "green"}, {"HOME", std::nullopt}};
  options.working_folder = "/";
  EXPECT_EQ(run_captured(options, kLong).text, "green\n/\noops\nunset\n");
}

TEST(ChildProcess, ACommandThatCannotRunIsNamed) {
  ProcessOptions options;
  for (const char* name : {"/no/such/program", "no-such-program-in-path", "/etc"}) {
    options.command = {name};
    EXPECT_THROW(ChildProcess::start(options), Error) << name;
  }
}

TEST(ChildProcess, AQuestionFailsInsteadOfWaiting) {
  const CapturedOutput output =
      run_captured(shell("read answer || echo no answer; cat /dev/tty || echo no terminal"), kLong);
  EXPECT_NE(output.text.find("no answer"), std::string::npos);
  EXPECT_NE(output.text.find("no terminal"), std::string::npos);
}

TEST(ChildProcess, EndsDescendantsInOtherSessionsThatIgnoreSigterm) {
  const TemporaryFolder folder;
  ChildProcess child =
      ChildProcess::start(shell("setsid sh -c 'trap \"\" TERM; echo $$ > " + (folder / "deep").string() +
                                "; sleep 1000' & "
                                "sh -c 'setsid sleep 1000 & echo $! > " +
                                (folder / "orphan").string() + "'; sleep 1000"));
  const pid_t deep = std::stoi(wait_for_file(folder / "deep"));
  const pid_t orphan = std::stoi(wait_for_file(folder / "orphan"));
  EXPECT_TRUE(is_running(deep));
  EXPECT_TRUE(is_running(orphan));
  child.end();
  EXPECT_FALSE(is_running(deep));
  EXPECT_FALSE(is_running(orphan));
}

TEST(ChildProcess, WhatACommandLeavesBehindEndsWithIt) {
  const TemporaryFolder folder;
  ChildProcess child =
      ChildProcess::start(shell("setsid sleep 1000 & echo $! > " + (folder / "left").string() + "; exit 5"));
  const auto status = child.wait(kLong);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->code, 5);
  EXPECT_FALSE(is_running(std::stoi(wait_for_file(folder / "left"))));
}

TEST(ChildProcess, NothingSurvivesAParentThatIsKilled) {
  const TemporaryFolder folder;
  const pid_t parent = ::fork();
  if (parent == 0) {
    ChildProcess child = ChildProcess::start(
        shell("setsid sleep 1000 & echo $! > " + (folder / "left").string() + "; sleep 1000"));
    ::pause();
    ::_exit(0);
  }
  const pid_t left = std::stoi(wait_for_file(folder / "left"));
  ASSERT_TRUE(is_running(left));
  ::kill(parent, SIGKILL);
  ::waitpid(parent, nullptr, 0);
  for (int i = 0; i < 1000 && is_running(left); ++i) ::usleep(10000);
  EXPECT_FALSE(is_running(left));
}

TEST(ChildProcess, WaitGivesUpWhenTheTimeRunsOut) {
  ChildProcess child = ChildProcess::start(shell("sleep 1000"));
  EXPECT_FALSE(child.wait(milliseconds(30)).has_value());
  EXPECT_TRUE(child.running());
  EXPECT_EQ(child.end().signal, SIGTERM);
  EXPECT_FALSE(child.running());
  const CapturedOutput output = run_captured(shell("echo started; sleep 1000"), milliseconds(200));
  EXPECT_TRUE(output.timed_out);
}

TEST(ChildProcess, AnAddressSpaceLimitHolds) {
  ProcessOptions options;
  options.command = {python_for_tests(), "-c", "x = bytearray(1 << 30); print('fits')"};
  EXPECT_EQ(run_captured(options, kLong).text, "fits\n");
  options.address_space_bytes = 512ll << 20;
  const CapturedOutput limited = run_captured(options, kLong);
  EXPECT_EQ(last_line(limited.text), "MemoryError");
}

TEST(LastLine, SkipsBlankLinesAndProgressBars) {
  EXPECT_EQ(last_line("a\nb\n\n  \n"), "b");
  EXPECT_EQ(last_line("10%\r20%\rValueError: x"), "ValueError: x");
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(last_line(std::string(1000, 'x')).size(), 300u);
}

}  // namespace
}  // namespace batchwright
