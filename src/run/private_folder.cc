#include "run/private_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/error.h"

namespace batchwright::run {
namespace {

constexpr const char* kFolderPrefix = "batchwright-run-";
// A folder is locked microseconds after it is made; one that is as old as this and not locked has no owner.
constexpr std::chrono::minutes kSurelyLocked{1};

// The descriptor that holds the lock, or -1. The system releases it with the last process that holds it: a
// killed tuner's supervisors (ChildProcess) keep it until they have ended what it started.
int lock_of(const std::filesystem::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    ::close(descriptor);
    return -1;
  }
  return descriptor;
}

bool is_ours_and_old(const std::filesystem::path& folder) {
  struct stat status{};
  if (::lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) || status.st_uid != ::geteuid())
    return false;
  const auto changed = std::chrono::system_clock::from_time_t(status.st_mtime);
  return std::chrono::system_clock::now() - changed > kSurelyLocked;
}

void remove_ownerless(const std::filesystem::path& parent) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (auto entry = std::filesystem::directory_iterator(parent, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().filename().string().starts_with(kFolderPrefix) && is_ours_and_old(entry->path()))
      found.push_back(entry->path());
  }
  for (const std::filesystem::path& folder : found) {
    const int lock = lock_of(folder);
    if (lock < 0) continue;
    std::filesystem::remove_all(folder, error);
    ::close(lock);
  }
}

std::filesystem::path parent_folder() {
  constexpr std::size_t kMostBytes = 40;  // Python's multiprocessing makes sockets a few folders below
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named == '/' && std::strlen(named) < kMostBytes ? named : "/tmp";
}

}  // namespace

PrivateFolder::PrivateFolder() {
  const std::filesystem::path parent = parent_folder();
  remove_ownerless(parent);
  std::string name = (parent / (std::string(kFolderPrefix) + "XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorKind::Internal, name, std::string("cannot be made (") + std::strerror(errno) + ")");
  path_ = name;
  lock_ = lock_of(path_);
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

}  // namespace batchwright::run
