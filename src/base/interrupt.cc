#include "base/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"

namespace batchwright {
namespace {

// A signal handler can reach nothing but globals; the guard owns them.
std::atomic<int> g_signals{0};
int g_pipe[2] = {-1, -1};
struct sigaction g_former_interrupt, g_former_terminate, g_former_hang_up;

void note_signal(int number) {
  const int saved_errno = errno;
  // A terminal that closes may say so twice.
  if (g_signals.fetch_add(1) >= 1 && number != SIGHUP) ::_exit(130);
  (void)!::write(g_pipe[1], "!", 1);
  errno = saved_errno;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  if (g_pipe[0] >= 0) throw Error(ErrorKind::Internal, "interrupt", "a guard exists already");
  if (::pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ErrorKind::Internal, "interrupt", std::strerror(errno));
  }
  g_signals = 0;
  struct sigaction action{};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &g_former_interrupt);
  ::sigaction(SIGTERM, &action, &g_former_terminate);
  // The terminal is gone; under nohup that is nothing.
  ::sigaction(SIGHUP, nullptr, &g_former_hang_up);
  if (g_former_hang_up.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &g_former_interrupt, nullptr);
  ::sigaction(SIGTERM, &g_former_terminate, nullptr);
  ::sigaction(SIGHUP, &g_former_hang_up, nullptr);
  for (int& end : g_pipe) {
    ::close(end);
    end = -1;
  }
}

bool InterruptGuard::requested() const { return g_signals.load() > 0; }

int InterruptGuard::descriptor() const { return g_pipe[0]; }

void InterruptGuard::check() const {
  if (requested()) throw Error(ErrorKind::Interrupted, "interrupted", "stopped by a signal");
  if (stop_at_ && steady_seconds() >= *stop_at_)
    throw Error(ErrorKind::Interrupted, "interrupted", "its time is up");
}

}  // namespace batchwright
