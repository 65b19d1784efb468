// device/host/shared_memory: which memory can other processes of this host see?
//
// Idea: a file that has no name anywhere (memfd_create). Another process opens it as /proc/PID/fd/N, maps it, and sees
// the same bytes. Ranks that torchrun or mpirun started have no parent of ours that could hand descriptors on, but the
// kernel lets processes of one user look at each other there. As there is no name, there is nothing to remove: when the
// last process that maps the file ends, killed or not, the kernel takes the memory back. (Segments of shm_open stay in
// /dev/shm when their maker is killed between making and removing them, and a container often has 64 MiB of it.)
//
// The file grows by chunks, each twice as long as the one before. So a place in the file tells its chunk by itself,
// what was mapped stays where it is, and others map a chunk when they first need it.
//
// Invariants
//   - an address, a place in the file, means the same in all processes; 0 is never given out;
//   - what is given out is never taken back, as in every device's arena, and never lies in two chunks.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/base/types.hpp"

namespace shardbook::device {

class SharedMemory {
 public:
  using Address = std::uint64_t;

  // Memory of this process. Throws base::Failure where the system gives none.
  SharedMemory();
  // That of another process of this host, by what it says of its own. Throws base::Failure where that cannot be opened,
  // or is not what it was said to be.
  SharedMemory(pid_t pid, int file, const std::string& mark);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;

  // Zeroed, on 256 bytes. Throws base::Failure where memory does not suffice. REQUIRES: it is this process' own.
  void* allocate(base::Bytes bytes);
  // The same, but the system takes memory for it only where it is touched.
  void* reserve(base::Bytes bytes);
  // REQUIRES: memory that this object gave out.
  Address address_of(const void* memory) const;
  // The memory of an address that its process gave out, as this process sees it.
  std::byte* at(Address address, base::Bytes bytes);

  int file() const { return file_; }
  const std::string& mark() const { return mark_; }   // tells this memory from any other

 private:
  static constexpr int most_chunks = 24;
  void* take(base::Bytes bytes, bool at_once);
  std::byte* chunk(int number);

  int file_ = -1;
  std::string mark_;
  bool own_ = false;
  Address next_ = 0;   // behind what was given out
  std::array<std::byte*, most_chunks> chunks_{};
};

}  // namespace shardbook::device
