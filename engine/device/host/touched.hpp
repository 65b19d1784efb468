// device/host/touched: what an op reads and writes, told to the thread sanitizer a range at a time.
//
// Under that sanitizer host kernels are compiled without it (kernels/CMakeLists.txt): each number that they touch is a call, and
// steps take four times as long. Instead the thread that runs an op says first which memory the op has declared. That is held
// against what other ranks do there: collectives among threads, which copy from a peer's memory, are instrumented. In other
// builds all this is nothing.
#pragma once

#include <array>
#include <cstddef>

#include "engine/program/program.hpp"

#ifdef __SANITIZE_THREAD__
extern "C" {
void __tsan_read_range(void* begin, unsigned long bytes);
void __tsan_write_range(void* begin, unsigned long bytes);
}
#endif

namespace shardbook::device {

#ifdef __SANITIZE_THREAD__

class Touched {
 public:
  void add(void* begin, std::size_t bytes, bool written) { ranges_[static_cast<std::size_t>(count_++)] = {begin, bytes, written}; }
  void tell() const {
    for (int at = 0; at < count_; ++at) {
      const Range& range = ranges_[static_cast<std::size_t>(at)];
      if (range.written) __tsan_write_range(range.begin, range.bytes);
      else __tsan_read_range(range.begin, range.bytes);
    }
  }

 private:
  struct Range {
    void* begin;
    std::size_t bytes;
    bool written;
  };
  std::array<Range, program::BufferUses::most> ranges_;
  int count_ = 0;
};
inline constexpr bool tells_what_is_touched = true;

#else

struct Touched {
  void add(void*, std::size_t, bool) {}
  void tell() const {}
};
inline constexpr bool tells_what_is_touched = false;

#endif

}  // namespace shardbook::device
