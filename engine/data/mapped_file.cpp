#include "engine/data/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace shardbook::data {

using base::Error;
using base::text;

base::Result<MappedFile> MappedFile::open(const std::string& path) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    return Error{text("cannot read the data ", path, ": ", std::strerror(errno))};
  }
  if (S_ISDIR(about.st_mode)) return Error{text("the data ", path, " is a folder: name the files within it")};
  if (!S_ISREG(about.st_mode)) return Error{text("the data ", path, " is no regular file, so it cannot be mapped")};
  if (about.st_size == 0) return Error{text("the data ", path, " is empty")};

  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error{text("cannot read the data ", path, ": ", std::strerror(errno))};
  const auto size = static_cast<std::size_t>(about.st_size);
  void* address = mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0);
  const int why = errno;
  ::close(file);
  if (address == MAP_FAILED) return Error{text("cannot map the data ", path, ": ", std::strerror(why))};
  return MappedFile({static_cast<const unsigned char*>(address), size});
}

MappedFile::MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<unsigned char*>(bytes_.data()), bytes_.size());
}

}  // namespace shardbook::data
