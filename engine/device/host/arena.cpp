#include "engine/device/host/arena.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "engine/base/check.hpp"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace shardbook::device {

namespace {

constexpr const char* gave_none = "the system gave no memory";

}  // namespace

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

HostArena::~HostArena() {
  for (const Piece& piece : pieces_) std::free(piece.begin);
}

void* HostArena::allocate(base::Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  std::size_t room = size + place_alignment;
  auto* const begin = static_cast<std::byte*>(std::calloc(room, 1));
  if (begin == nullptr) throw base::Failure(gave_none);
  pieces_.push_back({begin, room});
  void* place = begin;
  std::align(place_alignment, size, place, room);
#ifdef __SANITIZE_ADDRESS__
  // What lies before and behind is nobody's, though it was given, too
  __asan_poison_memory_region(begin, static_cast<std::size_t>(static_cast<std::byte*>(place) - begin));
  __asan_poison_memory_region(static_cast<std::byte*>(place) + size, room - size);
#endif
  return place;
}

#else

namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20, smallest_piece = huge_page / 32, largest_piece = 32 * huge_page;

std::size_t rounded(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

}  // namespace

HostArena::~HostArena() {
  for (const Piece& piece : pieces_) {
    if (piece.bytes < huge_page) std::free(piece.begin);
    else ::munmap(piece.begin, piece.bytes);
  }
}

HostArena::Piece HostArena::new_piece(std::size_t least) const {
  std::size_t all = 0;
  for (const Piece& piece : pieces_) all += piece.bytes;
  const std::size_t wanted = std::max(least, std::clamp(all, smallest_piece, largest_piece));
  if (wanted < huge_page) return {static_cast<std::byte*>(std::calloc(wanted, 1)), wanted};
  const std::size_t length = rounded(wanted, huge_page);
  void* const begin = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return {nullptr, length};
  ::madvise(begin, length, MADV_HUGEPAGE);   // where there are none, pages as they are
  return {static_cast<std::byte*>(begin), length};
}

void* HostArena::allocate(base::Bytes bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  if (!pieces_.empty()) {
    Piece& last = pieces_.back();
    void* place = last.begin + taken_;
    std::size_t room = last.bytes - taken_;
    if (std::align(place_alignment, size, place, room) != nullptr) {
      taken_ = last.bytes - room + size;
      return place;
    }
  }
  const Piece piece = new_piece(size + place_alignment);
  if (piece.begin == nullptr) throw base::Failure(gave_none);
  pieces_.push_back(piece);
  taken_ = 0;
  return allocate(bytes);
}

#endif

}  // namespace shardbook::device
