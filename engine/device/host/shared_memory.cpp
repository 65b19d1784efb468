#include "engine/device/host/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <utility>

#include "engine/base/check.hpp"
#include "engine/device/host/arena.hpp"
#include "engine/device/host/memory_left.hpp"

namespace shardbook::device {

namespace {

using Address = SharedMemory::Address;

constexpr Address first_chunk = Address{64} << 20;
constexpr std::size_t mark_bytes = 32;

Address length_of(int chunk) { return first_chunk << chunk; }
Address begin_of(int chunk) { return length_of(chunk) - first_chunk; }
int chunk_of(Address address) { return static_cast<int>(std::bit_width(address / first_chunk + 1)) - 1; }

}  // namespace

SharedMemory::SharedMemory() : own_(true) {
  file_ = ::memfd_create("shardbook", MFD_CLOEXEC);
  if (file_ < 0) throw base::Failure(base::text("no memory that processes can share: memfd_create: ", std::strerror(errno)));
  std::string random(mark_bytes / 2, '\0');
  SHARDBOOK_CHECK(::getrandom(random.data(), random.size(), 0) == static_cast<ssize_t>(random.size()), "getrandom: ", std::strerror(errno));
  for (const char byte : random) {
    mark_ += "0123456789abcdef"[static_cast<unsigned char>(byte) >> 4];
    mark_ += "0123456789abcdef"[static_cast<unsigned char>(byte) & 15];
  }
  std::memcpy(take(mark_bytes, true), mark_.data(), mark_bytes);
}

SharedMemory::SharedMemory(pid_t pid, int file, const std::string& mark) : mark_(mark) {
  const std::string path = base::text("/proc/", pid, "/fd/", file);
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) {
    const bool too_few = errno == EMFILE || errno == ENFILE;
    throw base::Failure(base::text("cannot open the memory of process ", pid, " (", path, ": ", std::strerror(errno), "): ",
                                   too_few ? "raise the limit of open files (ulimit -n)" : "ranks of --device host must be processes of one user in one container"));
  }
  std::string found(mark_bytes, '\0');
  if (::pread(file_, found.data(), found.size(), 0) == static_cast<ssize_t>(found.size()) && found == mark) return;
  ::close(file_);
  throw base::Failure(base::text(path, " is not the memory of the rank that names it: are all ranks in one container?"));
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)), mark_(std::move(other.mark_)), own_(other.own_), next_(other.next_),
      chunks_(std::exchange(other.chunks_, {})) {}

SharedMemory::~SharedMemory() {
  for (int number = 0; number < most_chunks; ++number) {
    if (chunks_[number] != nullptr) ::munmap(chunks_[number], length_of(number));
  }
  if (file_ >= 0) ::close(file_);
}

std::byte* SharedMemory::chunk(int number) {
  SHARDBOOK_CHECK(number >= 0 && number < most_chunks, "an address in chunk ", number);
  std::byte*& mapped = chunks_[static_cast<std::size_t>(number)];
  if (mapped != nullptr) return mapped;
  void* memory = ::mmap(nullptr, length_of(number), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file_, static_cast<off_t>(begin_of(number)));
  if (memory == MAP_FAILED) {
    throw base::Failure(base::text("the system gave no room for ", length_of(number) >> 20, " MiB that processes share (", std::strerror(errno), ")"));
  }
  return mapped = static_cast<std::byte*>(memory);
}

void* SharedMemory::take(base::Bytes bytes, bool at_once) {
  SHARDBOOK_CHECK(own_, "memory of another process is not given out here");
  const Address length = (std::max<Address>(static_cast<Address>(bytes), 1) + place_alignment - 1) / place_alignment * place_alignment;
  // The kernel promises more of such memory than there is, and kills somebody when it cannot keep that.
  if (at_once && length >= first_chunk) {
    if (const Address left = memory_left(); length > left) throw base::Failure(base::text("the system has ", left >> 20, " MiB"));
  }
  // The first chunk, from here on, that holds it whole.
  Address address = next_;
  int number = chunk_of(address);
  while (address + length > begin_of(number) + length_of(number)) {
    address = begin_of(++number);
    if (number == most_chunks) throw base::Failure(base::text("no process shares ", length >> 20, " MiB in one piece"));
  }
  std::byte* memory = chunk(number);
  const off_t end = static_cast<off_t>(address + length);
  const off_t now = ::lseek(file_, 0, SEEK_END);
  if (now < end && ::ftruncate(file_, static_cast<off_t>(begin_of(number) + length_of(number))) != 0) {
    throw base::Failure(base::text("the system gave no memory (", std::strerror(errno), ")"));
  }
  // Taken at once, for a page that is missing when it is touched ends the process without a word.
  if (at_once && ::fallocate(file_, 0, static_cast<off_t>(address), static_cast<off_t>(length)) != 0) {
    throw base::Failure(base::text("the system gave no memory (", std::strerror(errno), ")"));
  }
  next_ = address + length;
  return memory + (address - begin_of(number));
}

void* SharedMemory::allocate(base::Bytes bytes) { return take(bytes, true); }
void* SharedMemory::reserve(base::Bytes bytes) { return take(bytes, false); }

SharedMemory::Address SharedMemory::address_of(const void* memory) const {
  for (int number = 0; number < most_chunks; ++number) {
    const std::byte* begin = chunks_[static_cast<std::size_t>(number)];
    if (begin == nullptr || std::less<const void*>()(memory, begin) || !std::less<const void*>()(memory, begin + length_of(number))) continue;
    return begin_of(number) + static_cast<Address>(static_cast<const std::byte*>(memory) - begin);
  }
  SHARDBOOK_CHECK(false, "other processes cannot see this memory: it is not of this rank's device");
  return 0;
}

std::byte* SharedMemory::at(Address address, base::Bytes bytes) {
  const int number = chunk_of(address);
  std::byte* begin = chunk(number);
  const Address offset = address - begin_of(number);
  SHARDBOOK_CHECK(bytes >= 0 && offset + static_cast<Address>(bytes) <= length_of(number), "an address beyond its chunk");
  return begin + offset;
}

}  // namespace shardbook::device
