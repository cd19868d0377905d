#pragma once

#include <filesystem>

namespace batchwright::run {

// An empty folder that only this user may read, below TMPDIR (or /tmp when that path is long: a socket's path
// holds 108 bytes). Removed with all that is in it when the object ends. If this process is killed first, the
// folder is removed by the next process of the same user that makes one: its lock is free then.
class PrivateFolder {
 public:
  PrivateFolder();  // throws Internal with the system's reason
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

}  // namespace batchwright::run
