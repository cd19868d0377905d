#include "run/failure.h"

#include <fmt/format.h>
#include <signal.h>

#include <array>
#include <charconv>

#include "base/error.h"
#include "base/files.h"

namespace batchwright::run {
namespace {

struct Pattern {
  std::string_view text;
  Outcome outcome;
  std::string_view meaning;  // empty: the line says enough
};

// In the order of precedence: an allocation failure often drags other messages behind it.
constexpr std::array<Pattern, 18> kPatterns = {
    {{"CUDA out of memory", Outcome::OutOfMemory, ""},
     {"torch.OutOfMemoryError", Outcome::OutOfMemory, ""},
     {"HIP out of memory", Outcome::OutOfMemory, ""},
     {"MPS backend out of memory", Outcome::OutOfMemory, ""},
     {"CUBLAS_STATUS_ALLOC_FAILED", Outcome::OutOfMemory, "cuBLAS could not allocate"},
     {"CUDNN_STATUS_ALLOC_FAILED", Outcome::OutOfMemory, "cuDNN could not allocate"},
     {"CUDA error: out of memory", Outcome::OutOfMemory, ""},
     {"DefaultCPUAllocator: can't allocate memory", Outcome::OutOfMemory,
      "the CPU allocator could not allocate"},
     {"DefaultCPUAllocator: not enough memory", Outcome::OutOfMemory, "the CPU allocator could not allocate"},
     {"CUDNN_STATUS_NOT_INITIALIZED", Outcome::OutOfMemory, "cuDNN found no memory for its handle"},
     {"[Errno 12] Cannot allocate memory", Outcome::OutOfMemory, ""},
     {"MemoryError", Outcome::OutOfMemory, ""},
     {"std::bad_alloc", Outcome::OutOfMemory, ""},
     {"Watchdog caught collective operation timeout", Outcome::TimedOut, "an NCCL collective timed out"},
     {"[Timeout in gloo]", Outcome::TimedOut, "a Gloo collective timed out"},
     {"Timed out waiting", Outcome::TimedOut, "a Gloo collective timed out"},
     {"wait timeout after", Outcome::TimedOut, "a process did not join the others in time"},
     {"EOFError: EOF when reading a line", Outcome::Crashed,
      "the script asks for input; run it so that it does not"}}};

std::string line_with(std::string_view output, std::size_t at) {
  const std::size_t before = output.rfind('\n', at);
  const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
  return last_line(output.substr(start, output.find('\n', at) - start), 200);
}

std::optional<std::int64_t> value_after(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const char* const begin = text.data() + at + name.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> counter_in(const std::string& path, std::string_view name) {
  try {
    return value_after(read_file(path, 1 << 20), name);
  } catch (const Error&) {
    return std::nullopt;  // not every system has it
  }
}

// The exception of the last traceback, also one that torchrun prefixes with its rank; torchrun's own, which
// only says that a process failed, does not count. Empty when there is none.
std::string exception_line(std::string_view output) {
  constexpr std::string_view kTraceback = "Traceback (most recent call last):";
  std::string found;
  for (std::size_t at = output.find(kTraceback); at != std::string_view::npos;
       at = output.find(kTraceback, at)) {
    const std::size_t line_start = output.rfind('\n', at) + 1;  // npos + 1 is 0
    const std::string_view prefix = output.substr(line_start, at - line_start);
    at = output.find('\n', at);
    while (at != std::string_view::npos && at + 1 < output.size()) {
      const std::size_t begin = at + 1;
      at = output.find('\n', begin);
      std::string_view line = output.substr(begin, at == std::string_view::npos ? at : at - begin);
      if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
      if (line.empty() || line.front() == ' ') continue;
      if (line.find("ChildFailedError") == std::string_view::npos) found = line;
      break;
    }
    if (at == std::string_view::npos) break;
  }
  return found;
}

}  // namespace

Failure classify_failure(const ExitStatus& status, std::string_view output, bool kernel_killed) {
  Failure failure;
  failure.exit_code = status.code;
  failure.last_line = last_line(output, 1000);
  for (const Pattern& pattern : kPatterns) {
    const std::size_t at = output.rfind(pattern.text);
    if (at == std::string_view::npos) continue;
    failure.outcome = pattern.outcome;
    failure.reason = pattern.meaning.empty() ? line_with(output, at) : std::string(pattern.meaning);
    return failure;
  }
  // A launcher survives the process that was killed, and reports its signal.
  const bool killed = status.signal == SIGKILL || status.code == 128 + SIGKILL ||
                      (status.code != 0 && output.find("SIGKILL") != std::string_view::npos);
  if (killed && kernel_killed) {
    failure.outcome = Outcome::OutOfMemory;
    failure.reason = "the kernel's out-of-memory killer ended it";
    return failure;
  }
  failure.reason = to_string(status);
  if (const std::string exception = exception_line(output); !exception.empty()) {
    failure.reason += "; " + exception.substr(0, 200);
  } else if (!failure.last_line.empty())
    failure.reason += "; its last line: " + failure.last_line.substr(0, 200);
  return failure;
}

std::optional<std::int64_t> OomKillCounter::read() const {
  if (group_ != nullptr) return group_->oom_kills();
  if (const auto group = own_memory_group(); !group.empty()) {
    if (const auto count = oom_kills_in(group)) return count;
  }
  return counter_in("/proc/vmstat", "oom_kill ");
}

bool OomKillCounter::risen() const {
  const auto now = read();
  return start_ && now && *now > *start_;
}

}  // namespace batchwright::run
