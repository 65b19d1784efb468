// The same sum by the processor's own instruction (SSE 4.2), eight bytes at a time: some three times as fast as tables.
#include <nmmintrin.h>

#include <cstring>

#include "engine/base/crc32c_forms.hpp"

namespace shardbook::base {

bool processor_sums_crc32c() { return __builtin_cpu_supports("sse4.2") != 0; }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_by_processor(const unsigned char* at, std::size_t size, std::uint32_t rest) {
  std::uint64_t wide = rest;
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  rest = static_cast<std::uint32_t>(wide);
  for (; size > 0; --size, ++at) rest = _mm_crc32_u8(rest, *at);
  return rest;
}

}  // namespace shardbook::base
