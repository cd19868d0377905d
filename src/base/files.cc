#include "base/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace batchwright {
namespace {

std::string system_reason() { return std::strerror(errno); }

// Closes on scope exit.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

int open_for_reading(const std::filesystem::path& path, struct stat& info) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw Error(ErrorKind::NotFound, path.string(), "cannot be read (" + system_reason() + ")");
  if (::fstat(fd, &info) != 0 || S_ISDIR(info.st_mode)) {
    ::close(fd);
    throw Error(ErrorKind::NotFound, path.string(), "is a folder, and a file is needed");
  }
  return fd;
}

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written (" + system_reason() + ")");
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes) {
  struct stat info{};
  const Descriptor file{open_for_reading(path, info)};
  std::string content;
  if (info.st_size > max_bytes) {
    throw Error(ErrorKind::InvalidInput, path.string(),
                fmt::format("has {} bytes; at most {} are read", info.st_size, max_bytes));
  }
  content.reserve(static_cast<std::size_t>(info.st_size));
  char buffer[1 << 16];
  while (true) {
    const ssize_t got = ::read(file.fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorKind::NotFound, path.string(), "cannot be read (" + system_reason() + ")");
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (static_cast<std::int64_t>(content.size()) > max_bytes) {
      throw Error(ErrorKind::InvalidInput, path.string(), fmt::format("has more than {} bytes", max_bytes));
    }
  }
}

void write_file_atomic(const std::filesystem::path& path, std::string_view content) {
  write_file_atomic(path, std::span(&content, 1));
}

void write_file_atomic(const std::filesystem::path& path, std::span<const std::string_view> pieces) {
  std::error_code error;
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path(), error);
  if (error)
    throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written (" + error.message() + ")");
  const std::filesystem::path temporary = path.string() + fmt::format(".{}.partial", ::getpid());
  try {
    const Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)};
    if (file.fd < 0)
      throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written (" + system_reason() + ")");
    for (const std::string_view piece : pieces) write_all(file.fd, piece, path);
    if (::fsync(file.fd) != 0) {
      throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written (" + system_reason() + ")");
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      throw Error(ErrorKind::InvalidInput, path.string(), "cannot be replaced (" + system_reason() + ")");
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void remove_torn_files(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> torn;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".partial") torn.push_back(entry.path());
  }
  for (const std::filesystem::path& path : torn) std::filesystem::remove(path, error);
}

void append_line_synced(const std::filesystem::path& path, std::string_view line) {
  const Descriptor file{::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)};
  if (file.fd < 0)
    throw Error(ErrorKind::InvalidInput, path.string(), "cannot be written (" + system_reason() + ")");
  // One write call: a kill between two would leave a line without its end.
  write_all(file.fd, std::string(line) + "\n", path);
  if (::fsync(file.fd) != 0 && errno != EINVAL) {
    throw Error(ErrorKind::InvalidInput, path.string(), "cannot be synced (" + system_reason() + ")");
  }
}

std::string content_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  struct stat info{};
  // Before it is opened: a pipe without a writer would wait for one.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    throw Error(ErrorKind::InvalidInput, path.string(), "is a pipe or a device, and a file is needed");
  }
  const Descriptor file{open_for_reading(path, info)};
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (mapped == MAP_FAILED) {
    throw Error(ErrorKind::NotFound, path.string(), "cannot be mapped (" + system_reason() + ")");
  }
  data_ = static_cast<const std::byte*>(mapped);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

std::string sampled_hash(const std::filesystem::path& path) {
  constexpr std::size_t kPieces = 64, kPieceBytes = 4096;
  const MappedFile file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (bytes.size() <= kPieces * kPieceBytes) return content_hash(bytes);
  std::string sampled = std::to_string(bytes.size());
  for (std::size_t i = 0; i < kPieces; ++i)
    sampled += bytes.substr((bytes.size() - kPieceBytes) / (kPieces - 1) * i, kPieceBytes);
  return content_hash(sampled);
}

void drop_resident_pages(std::span<const std::byte> mapped) {
  // Whole pages inside the span only: the others hold neighbours' bytes too.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(mapped.data() + mapped.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::size_t invalid_utf8_at(std::string_view text) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  while (i < text.size()) {
    const unsigned char lead = byte(i);
    std::size_t extra = 0;
    std::uint32_t code = 0, least = 0;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if ((lead & 0xE0) == 0xC0)
      extra = 1, code = lead & 0x1F, least = 0x80;
    else if ((lead & 0xF0) == 0xE0)
      extra = 2, code = lead & 0x0F, least = 0x800;
    else if ((lead & 0xF8) == 0xF0)
      extra = 3, code = lead & 0x07, least = 0x10000;
    else
      return i;
    if (i + extra >= text.size()) return i;
    for (std::size_t k = 1; k <= extra; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return i;
      code = code << 6 | (byte(i + k) & 0x3F);
    }
    // Overlong forms, surrogates and values past U+10FFFF are not UTF-8 (RFC 3629).
    if (code < least || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return i;
    i += extra + 1;
  }
  return std::string_view::npos;
}

}  // namespace batchwright
