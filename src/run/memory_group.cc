#include "run/memory_group.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/process.h"

namespace batchwright::run {
namespace {

// The path behind "0::" (v2) or "N:...memory...:" (v1) in /proc/self/cgroup.
std::string group_path(const std::string& text, bool unified) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        unified ? line.starts_with("0::") : ("," + controllers + ",").find(",memory,") != std::string::npos;
    if (wanted) return line.substr(second + 1);
  }
  return "";
}

// Kernel files take a value in one write; one that is refused leaves the limit unset.
bool put(const std::filesystem::path& file, const std::string& value) {
  std::ofstream out(file);
  out << value << std::flush;
  return static_cast<bool>(out);
}

// The number behind `key` in a file of the kernel; nullopt when there is none.
std::optional<std::int64_t> number_in(const std::filesystem::path& file, std::string_view key) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  try {
    const std::string text = read_file(file, 1 << 16);
    const std::size_t at = text.find(key);
    if (at == std::string::npos) return std::nullopt;
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data() + at + key.size(), end, value).ec == std::errc()) return value;
  } catch (const Error&) {
    // A group that is just going away.
  }
  return std::nullopt;
}

constexpr const char* kPrefix = "batchwright-";  // then the process's number, and which of its groups it is

// A process that was killed leaves its groups; the kernel lets one go when no process is in it.
void remove_groups_of_ended_processes(const std::filesystem::path& parent) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::directory_iterator(parent, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    pid_t owner = 0;
    const char* const begin = name.data() + std::char_traits<char>::length(kPrefix);
    if (std::from_chars(begin, name.data() + name.size(), owner).ec != std::errc() || owner <= 0) continue;
    if (has_ended(owner)) found.push_back(entry->path());
  }
  for (const std::filesystem::path& group : found) std::filesystem::remove(group, error);
}

}  // namespace

std::filesystem::path own_memory_group() {
  std::string text;
  try {
    text = read_file("/proc/self/cgroup", 1 << 16);
  } catch (const Error&) {
    return {};
  }
  std::error_code error;
  const std::filesystem::path second = "/sys/fs/cgroup" + group_path(text, true);
  if (std::filesystem::exists(second / "memory.events", error)) return second;
  for (const std::string& path :
       {group_path(text, false), std::string()}) {  // a container shows its own root
    const std::filesystem::path first = "/sys/fs/cgroup/memory" + path;
    if (std::filesystem::exists(first / "memory.oom_control", error)) return first;
  }
  return {};
}

std::optional<std::int64_t> oom_kills_in(const std::filesystem::path& group) {
  for (const char* name : {"memory.events", "memory.oom_control"}) {
    if (const auto kills = number_in(group / name, "oom_kill ")) return kills;
  }
  return std::nullopt;
}

std::unique_ptr<MemoryGroup> MemoryGroup::create(std::int64_t limit_bytes) {
  static std::atomic<int> count = 0;
  const std::filesystem::path own = own_memory_group();
  if (own.empty()) return nullptr;
  remove_groups_of_ended_processes(own);
  std::error_code error;
  const std::filesystem::path folder = own / fmt::format("{}{}-{}", kPrefix, ::getpid(), ++count);
  if (!std::filesystem::create_directory(folder, error)) return nullptr;
  std::unique_ptr<MemoryGroup> group(new MemoryGroup(folder));
  const std::string limit = std::to_string(limit_bytes);
  if (std::filesystem::exists(folder / "memory.max", error)) {
    put(folder / "memory.swap.max", "0");
    return put(folder / "memory.max", limit) ? std::move(group) : nullptr;
  }
  if (!std::filesystem::exists(folder / "memory.limit_in_bytes", error))
    return nullptr;  // no memory controller here
  if (!put(folder / "memory.limit_in_bytes", limit)) return nullptr;
  put(folder / "memory.memsw.limit_in_bytes", limit);
  return group;
}

MemoryGroup::~MemoryGroup() {
  std::error_code error;
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (std::filesystem::remove(folder_, error) || !std::filesystem::exists(folder_, error)) return;
    std::this_thread::sleep_for(
        std::chrono::milliseconds(20));  // the kernel still counts a process that ended
  }
}

std::vector<std::string> MemoryGroup::entered_by(const std::vector<std::string>& command) const {
  std::vector<std::string> words = {"/bin/sh", "-c", "echo $$ > \"$0\" && exec \"$@\"",
                                    (folder_ / "cgroup.procs").string()};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::optional<std::int64_t> MemoryGroup::oom_kills() const { return oom_kills_in(folder_); }

std::optional<std::int64_t> MemoryGroup::peak_bytes() const {
  const auto peak = number_in(folder_ / "memory.peak", "");
  return peak ? peak : number_in(folder_ / "memory.max_usage_in_bytes", "");
}

}  // namespace batchwright::run
