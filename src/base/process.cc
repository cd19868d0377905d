#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/supervisor.h"

extern char** environ;

namespace batchwright {
namespace {

std::string find_executable(const ProcessOptions& options) {
  const std::string& name = options.command.front();
  if (name.find('/') != std::string::npos) return name;
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const std::size_t end = rest.find(':');
    const std::string candidate = (std::filesystem::path(rest.substr(0, end)) / name).string();
    if (!std::filesystem::is_directory(candidate) && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  throw Error(ErrorKind::NotFound, name, "is not a program in PATH");
}

std::vector<std::string> changed_environment(const ProcessOptions& options) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    if (!options.environment.contains(name)) result.emplace_back(text);
  }
  for (const auto& [name, value] : options.environment) {
    if (value) result.push_back(name + "=" + *value);
  }
  return result;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A whole report, or nothing at the end of the stream.
std::optional<internal::SupervisorReport> read_report(int descriptor) {
  internal::SupervisorReport report;
  ssize_t got = 0;
  do {
    got = ::read(descriptor, &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  if (got != static_cast<ssize_t>(sizeof report)) return std::nullopt;  // pipes keep such short writes whole
  return report;
}

}  // namespace

bool has_ended(pid_t process) { return ::kill(process, 0) != 0 && errno == ESRCH; }

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

std::string to_string(const ExitStatus& status) {
  if (status.signal) return "was ended by " + signal_name(*status.signal);
  if (status.code) return fmt::format("exited with code {}", *status.code);
  return "ended in an unknown way";
}

ChildProcess ChildProcess::start(const ProcessOptions& options) {
  if (options.command.empty()) throw Error(ErrorKind::Internal, "process", "no command given");
  std::vector<std::string> arguments = options.command, environment = changed_environment(options);
  const std::string executable = find_executable(options);
  const std::string output = options.output_file.empty() ? "/dev/null" : options.output_file.string();
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> environment_pointers = pointers_to(environment);
  int pipe_ends[2];
  if (::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    throw Error(ErrorKind::Internal, executable, std::string("no pipe (") + std::strerror(errno) + ")");
  }
  internal::SupervisorPlan plan;
  plan.executable = executable.c_str();
  plan.arguments = argument_pointers.data();
  plan.environment = environment_pointers.data();
  plan.working_folder = options.working_folder.empty() ? nullptr : options.working_folder.c_str();
  plan.output_file = output.c_str();
  plan.address_space_bytes = options.address_space_bytes;
  plan.grace_milliseconds = options.grace.count();
  plan.report_descriptor = pipe_ends[1];
  plan.parent = ::getpid();
  const pid_t supervisor = ::fork();
  if (supervisor == 0) {
    ::close(pipe_ends[0]);
    internal::supervise(plan);
  }
  const int fork_error = errno;
  ::close(pipe_ends[1]);
  if (supervisor < 0) {
    ::close(pipe_ends[0]);
    throw Error(ErrorKind::Internal, executable,
                std::string("no process (") + std::strerror(fork_error) + ")");
  }
  ChildProcess child(supervisor, pipe_ends[0]);
  const auto first = read_report(child.status_descriptor_);
  if (first && first->kind == 2) {
    child.end();
    throw Error(ErrorKind::NotFound, executable,
                std::string("cannot be run (") + std::strerror(first->value) + ")");
  }
  if (!first || first->kind != 1) {
    child.end();
    throw Error(ErrorKind::Internal, executable, "its supervisor ended before it started");
  }
  child.command_id_ = static_cast<pid_t>(first->process_id);
  return child;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : supervisor_(std::exchange(other.supervisor_, -1)),
      command_id_(other.command_id_),
      status_descriptor_(std::exchange(other.status_descriptor_, -1)),
      status_(std::move(other.status_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(supervisor_, other.supervisor_);
  std::swap(command_id_, other.command_id_);
  std::swap(status_descriptor_, other.status_descriptor_);
  std::swap(status_, other.status_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (supervisor_ > 0) end();
  if (status_descriptor_ >= 0) ::close(status_descriptor_);
}

void ChildProcess::collect() {
  ExitStatus status;
  while (const auto report = read_report(status_descriptor_)) {
    if (report->kind != 3) continue;
    if (WIFEXITED(report->value)) status.code = WEXITSTATUS(report->value);
    if (WIFSIGNALED(report->value)) status.signal = WTERMSIG(report->value);
    status.peak_resident_bytes = report->peak_resident_kib * 1024;
  }
  int ignored = 0;
  while (::waitpid(supervisor_, &ignored, 0) < 0 && errno == EINTR) {
  }
  supervisor_ = -1;
  status_ = status;
}

bool ChildProcess::running() { return !wait(std::chrono::milliseconds(0)).has_value(); }

std::optional<ExitStatus> ChildProcess::wait(std::chrono::milliseconds timeout) {
  if (status_) return status_;
  pollfd entry{status_descriptor_, POLLIN, 0};
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    const int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (ready > 0) break;
    if (ready == 0 && left.count() <= 0) return std::nullopt;
    if (ready < 0 && errno != EINTR) break;
    if (ready < 0 && timeout.count() == 0) return std::nullopt;
  }
  collect();
  return status_;
}

ExitStatus ChildProcess::end() {
  if (status_) return *status_;
  if (supervisor_ <= 0) return {};
  ::kill(supervisor_, SIGTERM);
  collect();
  return *status_;
}

CapturedOutput run_captured(ProcessOptions options, std::chrono::milliseconds timeout,
                            std::int64_t most_bytes) {
  char name[] = "/tmp/batchwright-output-XXXXXX";
  const int file = ::mkstemp(name);
  if (file < 0) throw Error(ErrorKind::Internal, name, std::strerror(errno));
  ::close(file);
  options.output_file = name;
  CapturedOutput result;
  try {
    ChildProcess child = ChildProcess::start(options);
    const auto status = child.wait(timeout);
    result.timed_out = !status.has_value();
    result.status = status ? *status : child.end();
    result.text = read_file(name);
  } catch (...) {
    ::unlink(name);
    throw;
  }
  ::unlink(name);
  if (static_cast<std::int64_t>(result.text.size()) > most_bytes) {
    result.text.erase(0, result.text.size() - static_cast<std::size_t>(most_bytes));
  }
  return result;
}

void hold_standard_descriptors() {
  for (const int number : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Input is opened for writing only and output for reading only, so
    // that their use fails as it did; messages go nowhere.
    const int opened = ::open("/dev/null", number == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
    if (opened > STDERR_FILENO) ::close(opened);
  }
}

std::filesystem::path running_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

std::string last_line(std::string_view text, std::size_t most) {
  const auto is_blank = [](char c) { return c == '\n' || c == '\r' || c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  const std::size_t start = text.find_last_of("\n\r");
  if (start != std::string_view::npos) text.remove_prefix(start + 1);
  return std::string(text.substr(0, most));
}

}  // namespace batchwright
