#include "engine/checkpoint/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include "engine/base/crc32c.hpp"

namespace shardbook::checkpoint {

namespace fs = std::filesystem;
using base::Bytes;
using base::Done;
using base::Error;
using base::Status;
using base::text;

namespace {

Error cannot_write(const std::string& path) { return Error{text("cannot write ", path, ": ", std::strerror(errno))}; }

}  // namespace

File& File::operator=(File&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

File::~File() {
  if (number_ >= 0) ::close(number_);
}

base::Result<File> create(const std::string& path) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  int file = ::open(path.c_str(), flags, 0666);
  if (file < 0 && errno == EEXIST && ::unlink(path.c_str()) == 0) file = ::open(path.c_str(), flags, 0666);
  if (file < 0) return cannot_write(path);
  return File(file);
}

Status read_at(const File& file, Bytes at, Bytes size, void* to, const std::string& path) {
  for (Bytes have = 0; have < size;) {
    const ssize_t got = ::pread(file.number(), static_cast<char*>(to) + have, static_cast<std::size_t>(size - have), static_cast<off_t>(at + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return Error{text("cannot read ", path, ": ", got < 0 ? std::strerror(errno) : "it ends too early")};
    have += got;
  }
  return Done{};
}

Status write_all(const File& file, const void* bytes, std::size_t size, const std::string& path) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t written = ::write(file.number(), at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write(path);
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return Done{};
}

Status sync(const File& file, const std::string& path) {
  // Some file systems cannot, and say so
  if (::fsync(file.number()) != 0 && errno != EINVAL && errno != ENOTSUP) return cannot_write(path);
  return Done{};
}

Status sync_folder(const std::string& path) {
  const File folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open()) return cannot_write(path);
  return sync(folder, path);
}

Status write_file(const std::string& path, std::string_view content) {
  base::Result<File> file = create(path);
  if (!file) return file.as_error();
  if (Status written = write_all(file.value(), content.data(), content.size(), path); !written) return written;
  return sync(file.value(), path);
}

base::Result<DataWriter> DataWriter::begin(const std::string& path) {
  DataWriter writer;
  base::Result<File> out = create(path);
  if (!out) return out.as_error();
  writer.path_ = path;
  writer.out_ = std::move(out).value();
  writer.file_.name = fs::path(path).filename().string();
  return writer;
}

//@ checkpoint.sums: Each chunk of a file has a sum, and grows until the next one begins.
void DataWriter::sum(const char* at, Bytes size) {
  for (Bytes begin = file_.bytes; size > 0;) {
    const Bytes within = begin % chunk_bytes, part = std::min(size, chunk_bytes - within);
    if (within == 0) file_.sums.push_back(0);
    file_.sums.back() = base::crc32c(at, static_cast<std::size_t>(part), file_.sums.back());
    begin += part;
    at += part;
    size -= part;
  }
}
//@end

// The kernel copies what is written as fast as a processor reads it: so another one sums it meanwhile.
Status DataWriter::write(const void* bytes, Bytes size) {
  const auto* at = static_cast<const char*>(bytes);
  std::thread beside;
  if (size >= chunk_bytes) beside = std::thread([=, this] { sum(at, size); });
  else sum(at, size);
  const Status written = write_all(out_, at, static_cast<std::size_t>(size), path_);
  if (beside.joinable()) beside.join();
  if (!written) return written;
  // The disk begins now and not when it is waited for. Where that cannot be asked for, it begins then.
  if (size >= chunk_bytes) ::sync_file_range(out_.number(), file_.bytes, size, SYNC_FILE_RANGE_WRITE);
  file_.bytes += size;
  return Done{};
}

base::Result<DataFile> DataWriter::finish() {
  if (Status synced = sync(out_, path_); !synced) return synced.as_error();
  out_ = File();
  return std::move(file_);
}

Status DataReader::open(int number) {
  File& file = open_[static_cast<std::size_t>(number)];
  if (file.is_open()) return Done{};
  const DataFile& known = manifest_.files[static_cast<std::size_t>(number)];
  const std::string path = (fs::path(folder_) / known.name).string();
  // Neither a link that leads elsewhere nor a pipe that nobody fills
  File opened(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!opened.is_open()) return Error{text("cannot read ", path, ": ", std::strerror(errno), "; take another checkpoint")};
  struct stat status = {};
  if (::fstat(opened.number(), &status) != 0 || !S_ISREG(status.st_mode)) return Error{text("cannot read ", path, ": it is no file; take another checkpoint")};
  if (status.st_size != known.bytes) {
    return Error{text(path, " has ", status.st_size, " bytes, and its manifest says ", known.bytes, ": it is damaged; take another checkpoint")};
  }
  constexpr int most_open = 64;
  if (++how_many_ > most_open) {
    for (File& other : open_) other = File();
    how_many_ = 1;
  }
  file = std::move(opened);
  return Done{};
}

Status DataReader::take_chunk(int number, std::size_t chunk) {
  if (file_ == number && chunk_ == chunk) return Done{};
  if (Status opened = open(number); !opened) return opened;
  const DataFile& known = manifest_.files[static_cast<std::size_t>(number)];
  const Bytes begin = static_cast<Bytes>(chunk) * chunk_bytes;
  file_ = -1;
  held_.resize(static_cast<std::size_t>(std::min(chunk_bytes, known.bytes - begin)));
  const std::string path = (fs::path(folder_) / known.name).string();
  const Status got = read_at(open_[static_cast<std::size_t>(number)], begin, static_cast<Bytes>(held_.size()), held_.data(), path);
  if (!got) return Error{text(got.error(), "; take another checkpoint")};
  if (base::crc32c(held_.data(), held_.size()) != known.sums[chunk]) {
    return Error{text(path, " is damaged: bytes ", begin, " to ", begin + static_cast<Bytes>(held_.size()), " are not those that were written; take another checkpoint")};
  }
  file_ = number;
  chunk_ = chunk;
  return Done{};
}

Status DataReader::read(int file, Bytes at, Bytes size, void* to) {
  auto* into = static_cast<char*>(to);
  while (size > 0) {
    const Bytes within = at % chunk_bytes, part = std::min(size, chunk_bytes - within);
    if (Status taken = take_chunk(file, static_cast<std::size_t>(at / chunk_bytes)); !taken) return taken;
    std::memcpy(into, held_.data() + within, static_cast<std::size_t>(part));
    at += part;
    into += part;
    size -= part;
  }
  return Done{};
}

Status DataReader::verify(int file) {
  if (Status opened = open(file); !opened) return opened;
  for (std::size_t chunk = 0; chunk < manifest_.files[static_cast<std::size_t>(file)].sums.size(); ++chunk) {
    if (Status taken = take_chunk(file, chunk); !taken) return taken;
  }
  return Done{};
}

}  // namespace shardbook::checkpoint
