#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace batchwright::run {

// A control group of the kernel that limits the memory of a command and of everything that it starts, counted
// together: what is resident, page cache included, without swap. Both hierarchies are known (cgroup v2
// memory.max, v1 memory.limit_in_bytes). Removed with the object, when the command's processes are gone.
class MemoryGroup {
 public:
  // Null when this system does not let us make one: then RLIMIT_AS is what is left.
  static std::unique_ptr<MemoryGroup> create(std::int64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;

  // The command that enters the group and then becomes `command`.
  std::vector<std::string> entered_by(const std::vector<std::string>& command) const;
  // Processes of the group that the kernel ended for memory; nullopt when it does not count them.
  std::optional<std::int64_t> oom_kills() const;
  // The most that the group ever held, bytes: never above its limit, file pages that the kernel could have
  // given up included. nullopt when the kernel does not say (v2 before Linux 5.19).
  std::optional<std::int64_t> peak_bytes() const;

 private:
  explicit MemoryGroup(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

// The control group of this process that accounts for memory, as a folder; empty when there is none.
std::filesystem::path own_memory_group();
// The count behind "oom_kill " in a group's memory.events (v2) or memory.oom_control (v1).
std::optional<std::int64_t> oom_kills_in(const std::filesystem::path& group);

}  // namespace batchwright::run
