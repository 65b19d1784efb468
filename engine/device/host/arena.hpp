// device/host/arena: the memory of a rank on the CPU.
//
// Idea: the system is asked for large pieces, which are filled from their begin; each is as large as all before it together, within
// bounds. That asks for huge pages where the kernel gives some (Linux, Documentation/admin-guide/mm/transhuge.rst): memory that is
// taken page by page costs a fault for every 4 KiB, and the heap writes the zeros of a buffer, which the system's pages have.
//
// Invariants: places are multiples of 256 bytes, as cudaMalloc() gives them; memory is zeroed; what nothing touches takes none, but for
// the rest of a huge page. Under the address sanitizer each place is the heap's own, and the bytes around it are nobody's.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/types.hpp"

namespace shardbook::device {

class HostArena {
 public:
  HostArena() = default;
  ~HostArena();
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  // Throws Failure where the system gives none.
  void* allocate(base::Bytes bytes);

 private:
  struct Piece {
    std::byte* begin;
    std::size_t bytes;
  };

  // Of at least so many bytes; from null where the system gives none.
  Piece new_piece(std::size_t least) const;

  std::vector<Piece> pieces_;
  std::size_t taken_ = 0;   // bytes of the last piece
};

}  // namespace shardbook::device
