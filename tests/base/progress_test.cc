#include "base/progress.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/interrupt.h"

namespace batchwright {
namespace {

// What a stream received.
class Capture {
 public:
  Capture() : stream_(::open_memstream(&text_, &size_)) {}
  ~Capture() {
    std::fclose(stream_);
    std::free(text_);
  }
  std::FILE* stream() { return stream_; }
  std::string text() {
    std::fflush(stream_);
    return std::string(text_, size_);
  }

 private:
  char* text_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
};

TEST(Progress, ALogGetsFewLinesWithAnEstimate) {
  Capture capture;
  double now = 0;
  Progress progress(capture.stream(), Progress::Style::Log, [&] { return now; });
  for (int step = 0; step <= 300; ++step) {
    now = 0.1 * step;
    progress.update("step " + std::to_string(step), step / 300.0);
  }
  EXPECT_EQ(capture.text(),
            "step 0  0 %\nstep 100  33 %, about 20.0 s left\nstep 200  67 %, about 10.0 s left\n"
            "step 300  100 %\n");
}

TEST(Progress, ATerminalsLineIsRewrittenAndClearedAtTheEnd) {
  Capture capture;
  double now = 0;
  Progress progress(capture.stream(), Progress::Style::Terminal, [&] { return now; });
  progress.update("one");
  now = 0.05;
  progress.update("too soon");
  now = 0.2;
  progress.update("two");
  progress.finish();
  EXPECT_EQ(capture.text(), "\r\x1b[2Kone\r\x1b[2Ktwo\r\x1b[2K");
}

TEST(SecondsLeft, IsUnknownAtTheBeginning) {
  EXPECT_FALSE(seconds_left(1, 0.01).has_value());
  EXPECT_DOUBLE_EQ(*seconds_left(10, 0.25), 30);
}

TEST(InterruptGuard, NotesASignalAndRestoresTheFormerHandler) {
  {
    const InterruptGuard guard;
    EXPECT_FALSE(guard.requested());
    guard.check();
    ::raise(SIGINT);
    ::raise(SIGHUP);  // as well: not a second wish
    EXPECT_TRUE(guard.requested());
    EXPECT_THROW(guard.check(), Error);
    EXPECT_THROW(InterruptGuard(), Error);
  }
  {
    const InterruptGuard guard;
    ::raise(SIGHUP);
    EXPECT_TRUE(guard.requested());
  }
  ::signal(SIGHUP, SIG_IGN);  // nohup
  InterruptGuard fresh;
  ::raise(SIGHUP);
  EXPECT_FALSE(fresh.requested());
  ::signal(SIGHUP, SIG_DFL);
  fresh.stop_at(steady_seconds() + 1000);
  fresh.check();
  fresh.stop_at(steady_seconds());
  EXPECT_THROW(fresh.check(), Error);
  EXPECT_FALSE(fresh.requested());
}

}  // namespace
}  // namespace batchwright
