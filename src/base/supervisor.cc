#include "base/supervisor.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace batchwright::internal {
namespace {

std::int64_t now_milliseconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void report(const SupervisorPlan& plan, SupervisorReport message) {
  while (::write(plan.report_descriptor, &message, sizeof message) < 0 && errno == EINTR) {
  }
}

// The descriptors that we inherited would keep sockets and pipes open that must close when our parent dies.
// Returns the report pipe's new number.
int keep_only_the_report(int report_descriptor) {
  const int null_device = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2 && null_device >= 0; ++standard) ::dup2(null_device, standard);
  constexpr int kKept = 3;
  if (report_descriptor != kKept) ::dup3(report_descriptor, kKept, O_CLOEXEC);
  if (::syscall(SYS_close_range, kKept + 1, ~0u, 0) != 0) {
    for (int descriptor = kKept + 1; descriptor < 65536; ++descriptor) ::close(descriptor);
  }
  return kKept;
}

[[noreturn]] void execute(const SupervisorPlan& plan, int failure_pipe, const sigset_t& empty) {
  const auto fail = [&]() {
    const std::int32_t reason = errno;
    (void)!::write(failure_pipe, &reason, sizeof reason);
    ::_exit(127);
  };
  // A supervisor that is killed takes the command with it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &empty, nullptr);
  if (plan.working_folder != nullptr && ::chdir(plan.working_folder) != 0) fail();
  const int input = ::open("/dev/null", O_RDONLY);
  const int output = ::open(plan.output_file, O_WRONLY | O_CREAT | O_APPEND, 0666);
  if (input < 0 || output < 0 || ::dup2(input, 0) < 0 || ::dup2(output, 1) < 0 || ::dup2(output, 2) < 0)
    fail();
  if (input > 2) ::close(input);
  if (output > 2) ::close(output);
  if (plan.address_space_bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(plan.address_space_bytes),
                       static_cast<rlim_t>(plan.address_space_bytes)};
    if (::setrlimit(RLIMIT_AS, &limit) != 0) fail();
  }
  ::execve(plan.executable, plan.arguments, plan.environment);
  fail();
  __builtin_unreachable();
}

// The parent process id in the text of /proc/PID/stat; the command's name in parentheses may hold anything.
pid_t parent_in_stat(const char* text) {
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0' || at[2] == '\0') return -1;
  at += 4;  // ") S "
  pid_t parent = 0;
  for (; *at >= '0' && *at <= '9'; ++at) parent = parent * 10 + (*at - '0');
  return parent;
}

pid_t parent_of(const char* process) {
  char path[64] = "/proc/";
  std::strncat(path, process, 24);
  std::strcat(path, "/stat");
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char text[512];
  const ssize_t got = ::read(file, text, sizeof text - 1);
  ::close(file);
  if (got <= 0) return -1;
  text[got] = '\0';
  return parent_in_stat(text);
}

constexpr int kMostProcesses = 8192;
struct ProcessTable {
  pid_t id[kMostProcesses], parent[kMostProcesses];
  bool below[kMostProcesses];
  int count = 0;
};

// getdents64 instead of readdir: the latter allocates.
void read_process_table(ProcessTable& table) {
  table.count = 0;
  const int folder = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) char buffer[16384];
  while (true) {
    const long got = ::syscall(SYS_getdents64, folder, buffer, sizeof buffer);
    if (got <= 0) break;
    for (long at = 0; at < got;) {
      // struct linux_dirent64: u64 inode, i64 offset, u16 length, u8 type, name
      std::uint16_t length = 0;
      std::memcpy(&length, buffer + at + 16, sizeof length);
      const char* name = buffer + at + 19;
      at += length;
      pid_t id = 0;
      const char* digit = name;
      for (; *digit >= '0' && *digit <= '9'; ++digit) id = id * 10 + (*digit - '0');
      if (id == 0 || *digit != '\0' || table.count == kMostProcesses) continue;
      table.id[table.count] = id;
      table.parent[table.count] = parent_of(name);
      table.below[table.count++] = false;
    }
  }
  ::close(folder);
}

void signal_descendants(ProcessTable& table, int number) {
  read_process_table(table);
  const pid_t self = ::getpid();
  for (bool grown = true; grown;) {
    grown = false;
    for (int i = 0; i < table.count; ++i) {
      if (table.below[i]) continue;
      bool is_below = table.parent[i] == self;
      for (int j = 0; j < table.count && !is_below; ++j) {
        is_below = table.below[j] && table.id[j] == table.parent[i];
      }
      if (is_below) table.below[i] = grown = true;
    }
  }
  for (int i = 0; i < table.count; ++i) {
    if (table.below[i]) ::kill(table.id[i], number);
  }
}

struct Family {
  pid_t command = -1;
  bool command_ended = false, none_left = false;
  SupervisorReport ended{3, 0, 0, 0};
};

void reap(Family& family) {
  while (true) {
    int status = 0;
    rusage usage{};
    const pid_t child = ::wait4(-1, &status, WNOHANG, &usage);
    if (child < 0 && errno == EINTR) continue;
    if (child < 0) family.none_left = true;
    if (child <= 0) return;
    if (child == family.command) {
      family.command_ended = true;
      family.ended.value = status;
      family.ended.peak_resident_kib = usage.ru_maxrss;
    }
  }
}

// Forks and executes the command; returns 0 once it runs, else the errno that kept it from running.
std::int32_t start_command(const SupervisorPlan& plan, const sigset_t& empty, Family& family) {
  int failure_pipe[2];
  if (::pipe2(failure_pipe, O_CLOEXEC) != 0) return errno;
  family.command = ::fork();
  if (family.command < 0) return errno;
  if (family.command == 0) execute(plan, failure_pipe[1], empty);
  ::close(failure_pipe[1]);
  std::int32_t reason = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure_pipe[0], &reason, sizeof reason);
  } while (got < 0 && errno == EINTR);
  ::close(failure_pipe[0]);
  return got == static_cast<ssize_t>(sizeof reason) ? reason : 0;
}

// Waits for a signal of the set for at most this long; 0 when none came.
int next_signal(const sigset_t& set, std::int64_t milliseconds) {
  const timespec limit{static_cast<time_t>(milliseconds / 1000),
                       static_cast<long>(milliseconds % 1000) * 1000000};
  const int number = ::sigtimedwait(&set, nullptr, &limit);
  return number > 0 ? number : 0;
}

void end_all(const SupervisorPlan& plan, const sigset_t& set, Family& family) {
  static ProcessTable table;
  const std::int64_t begin = now_milliseconds();
  // When every descendant ignores even SIGKILL for this long it is stuck in the kernel; waiting on is no
  // help.
  constexpr std::int64_t kGiveUpMilliseconds = 20000;
  bool asked = false;
  for (reap(family); !family.none_left; reap(family)) {
    const std::int64_t waited = now_milliseconds() - begin;
    if (!asked) {
      signal_descendants(table, SIGTERM);
      signal_descendants(table, SIGCONT);  // a stopped process cannot act on SIGTERM
      asked = true;
    } else if (waited >= plan.grace_milliseconds) {
      signal_descendants(table, SIGKILL);
      if (waited > plan.grace_milliseconds + kGiveUpMilliseconds) return;
    }
    next_signal(set, 20);
  }
}

}  // namespace

void supervise(const SupervisorPlan& inherited) {
  SupervisorPlan plan = inherited;
  plan.report_descriptor = keep_only_the_report(plan.report_descriptor);
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  sigset_t set, empty;
  sigemptyset(&empty);
  sigemptyset(&set);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
  ::sigprocmask(SIG_SETMASK, &set, nullptr);
  // A handler that we inherited, or an ignored SIGCHLD, would keep the signals from sigtimedwait.
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) ::signal(number, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != plan.parent) ::_exit(0);  // the parent died before the line above

  Family family;
  const std::int32_t reason = start_command(plan, empty, family);
  report(plan, {reason == 0 ? 1 : 2, reason, family.command, 0});
  while (!family.command_ended) {
    const int number = next_signal(set, 1000);
    reap(family);
    if (number != 0 && number != SIGCHLD) break;
  }
  end_all(plan, set, family);
  report(plan, family.ended);
  ::_exit(0);
}

}  // namespace batchwright::internal
