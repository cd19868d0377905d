#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace batchwright {

// The whole file. Throws NotFound (missing, unreadable or a folder) or InvalidInput (larger than max_bytes).
std::string read_file(const std::filesystem::path& path, std::int64_t max_bytes = 1ll << 34);

// Writes to a temporary file beside `path`, syncs it, and renames it over `path`: a reader sees the old file
// or the new one, never a part. Creates the parent folder. Throws InvalidInput with the system's reason.
void write_file_atomic(const std::filesystem::path& path, std::string_view content);
// The same for content in pieces, one after the other, without a copy of it all.
void write_file_atomic(const std::filesystem::path& path, std::span<const std::string_view> pieces);
// Removes what a kill in the middle of write_file_atomic left in a folder that only this process writes.
void remove_torn_files(const std::filesystem::path& folder);

// Appends content plus a newline and syncs: after return the line survives a kill of this process and of the
// machine.
void append_line_synced(const std::filesystem::path& path, std::string_view line);

// 128-bit XXH3 of the bytes as 32 hexadecimal digits: names cache entries; not for security.
std::string content_hash(std::string_view bytes);
// Of a file's size and of 64 pieces spread over it: tells weights from other weights without reading
// gigabytes.
std::string sampled_hash(const std::filesystem::path& path);

// A file mapped read-only for the lifetime of the object. An empty file maps to an empty span.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);  // throws NotFound naming the path
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Tells the system that these bytes of a MappedFile are not needed soon: they stop counting as resident
// memory, and are read from the file again if they are.
void drop_resident_pages(std::span<const std::byte> mapped);

// The index of the first byte that is not part of valid UTF-8, or npos when all of it is valid.
std::size_t invalid_utf8_at(std::string_view text);

}  // namespace batchwright
