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
constexpr std::array<Pattern, 14> kPatterns = {
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
     {"MemoryError", Outcome::OutOfMemory, ""},
     {"std::bad_alloc", Outcome::OutOfMemory, ""},
     {"Watchdog caught collective operation timeout", Outcome::TimedOut, "an NCCL collective timed out"},
     {"[Timeout in gloo]", Outcome::TimedOut, "a Gloo collective timed out"},
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

std::string own_control_group() {
  try {
    const std::string text = read_file("/proc/self/cgroup", 1 << 16);
    const std::size_t at = text.find("0::");
    if (at == std::string::npos) return "";
    return "/sys/fs/cgroup" + text.substr(at + 3, text.find('\n', at) - at - 3);
  } catch (const Error&) {
    return "";
  }
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
  if (status.signal == SIGKILL && kernel_killed) {
    failure.outcome = Outcome::OutOfMemory;
    failure.reason = "the kernel's out-of-memory killer ended it";
    return failure;
  }
  failure.reason = to_string(status);
  if (!failure.last_line.empty()) failure.reason += "; its last line: " + failure.last_line.substr(0, 200);
  return failure;
}

std::optional<std::int64_t> OomKillCounter::read() {
  const std::string group = own_control_group();
  if (!group.empty()) {
    if (const auto count = counter_in(group + "/memory.events", "oom_kill ")) return count;
  }
  return counter_in("/proc/vmstat", "oom_kill ");
}

bool OomKillCounter::risen() const {
  const auto now = read();
  return start_ && now && *now > *start_;
}

}  // namespace batchwright::run
