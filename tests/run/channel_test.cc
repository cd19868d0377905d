#include "run/channel.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "base/error.h"

namespace batchwright::run {
namespace {

struct Pair {
  Pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0); }
  ~Pair() { hang_up(); }
  void say(const std::string& text) {
    ASSERT_EQ(::write(ends[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void hang_up() {
    if (ends[0] >= 0) ::close(ends[0]);
    ends[0] = -1;
  }
  int ends[2] = {-1, -1};
};

TEST(WorkerChannel, ReassemblesLinesThatArriveInPieces) {
  Pair pair;
  WorkerChannel channel(pair.ends[1]);
  const std::string line = to_line(RunSplit{8, 4, 5, 0, "sampled", "auto", "none", 0}) + "\n";
  pair.say(line.substr(0, 7));
  EXPECT_FALSE(channel.stop_requested());
  pair.say(line.substr(7) + line);
  EXPECT_EQ(std::get<RunSplit>(channel.receive()).micro, 8);
  EXPECT_EQ(std::get<RunSplit>(channel.receive()).accum, 4);
}

TEST(WorkerChannel, SeesAStopBehindAMessageAndLosesNeither) {
  Pair pair;
  WorkerChannel channel(pair.ends[1]);
  pair.say(to_line(RunSplit{8, 4, 5, 0, "sampled", "auto", "none", 0}) + "\n" + to_line(Stop{}) + "\n");
  EXPECT_TRUE(channel.stop_requested());
  EXPECT_TRUE(std::holds_alternative<RunSplit>(channel.receive()));
  EXPECT_TRUE(std::holds_alternative<Stop>(channel.receive()));
}

TEST(WorkerChannel, ATunerThatIsGoneReadsAsStopAndFailsASend) {
  Pair pair;
  WorkerChannel channel(pair.ends[1]);
  pair.hang_up();
  EXPECT_TRUE(channel.stop_requested());
  EXPECT_TRUE(std::holds_alternative<Stop>(channel.receive()));
  try {
    channel.send(Note{"still here", std::nullopt});
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Interrupted);
  }
}

TEST(LineBuffer, BoundsALineWithoutAnEnd) {
  LineBuffer buffer;
  const std::string piece(1 << 20, 'x');
  EXPECT_THROW(
      {
        for (int i = 0; i < 20; ++i) {
          buffer.append(piece);
          buffer.next_line();
        }
      },
      Error);
}

}  // namespace
}  // namespace batchwright::run
