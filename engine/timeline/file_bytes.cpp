// timeline/file_bytes: mapping a file; see file_bytes.hpp.
#include "engine/timeline/file_bytes.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/timeline/gzip.hpp"

namespace shardbook::timeline {
namespace {

base::Error cannot_open(const std::string& path) {
  return base::Error{base::text("cannot read ", path, ": ", std::strerror(errno))};
}

}  // namespace

base::Result<FileBytes> FileBytes::open_as_it_is(const std::string& path) {
  // A pipe without a writer would hold an ordinary open for ever.
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return cannot_open(path);
  struct stat info {};
  if (::fstat(file, &info) != 0) {
    const base::Error error = cannot_open(path);
    ::close(file);
    return error;
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(file);
    return base::Error{base::text("cannot read ", path, ": it is not a file")};
  }
  FileBytes bytes;
  bytes.size_ = static_cast<std::size_t>(info.st_size);
  if (bytes.size_ > 0) {
    void* map = ::mmap(nullptr, bytes.size_, PROT_READ, MAP_PRIVATE, file, 0);
    if (map == MAP_FAILED) {
      const base::Error error = cannot_open(path);
      ::close(file);
      return error;
    }
    ::madvise(map, bytes.size_, MADV_SEQUENTIAL);
    bytes.map_ = static_cast<const char*>(map);
  }
  ::close(file);
  return bytes;
}

base::Result<FileBytes> FileBytes::open(const std::string& path, const std::function<bool(std::size_t)>& told) {
  base::Result<FileBytes> bytes = open_as_it_is(path);
  // The first bytes decide, not the file's name.
  if (!bytes || !begins_like_gzip(bytes.value().view())) return bytes;
  bool cut_off = false;
  base::Result<std::string> unpacked = gunzip(bytes.value().view(), path, &cut_off, told);
  if (!unpacked) return unpacked.as_error();
  FileBytes plain;
  plain.unpacked_ = std::move(unpacked).value();
  plain.cut_off_ = cut_off;
  return plain;
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : map_(std::exchange(other.map_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      unpacked_(std::move(other.unpacked_)),
      cut_off_(other.cut_off_),
      let_go_(other.let_go_) {}

FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
  std::swap(map_, other.map_);
  std::swap(size_, other.size_);
  std::swap(unpacked_, other.unpacked_);
  std::swap(cut_off_, other.cut_off_);
  std::swap(let_go_, other.let_go_);
  return *this;
}

void FileBytes::let_go(std::int64_t offset, std::int64_t size) const {
  if (map_ == nullptr) return;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const std::int64_t first = (offset + page - 1) / page * page, last = (offset + size) / page * page;
  if (first < last) ::madvise(const_cast<char*>(map_) + first, static_cast<std::size_t>(last - first), MADV_DONTNEED);
}

FileBytes::~FileBytes() {
  if (map_ != nullptr) ::munmap(const_cast<char*>(map_), size_);
}

}  // namespace shardbook::timeline
