// device/host/arena: the memory of a rank on the CPU.
//
// Idea: buffers fill large pieces of memory from their begin; each piece is as large as all before it together, within bounds. Small
// pieces are the heap's. Large ones are the system's own and ask for huge pages, which are given where the kernel has some (Linux,
// Documentation/admin-guide/mm/transhuge.rst): taken one by one, each 4 KiB cost a fault, and the heap writes the zeros of a buffer,
// which new pages have.
//
// Invariants: places are multiples of place_alignment, as cudaMalloc() gives them; memory is zeroed; of a large piece, what nothing touches
// takes none, but for the rest of a huge page. Under the sanitizers each buffer is the heap's own, and the address sanitizer knows
// that the bytes around it are nobody's.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/types.hpp"

namespace shardbook::device {

inline constexpr std::size_t place_alignment = 256;

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
