// base/crc32c_forms: by tables, or by the processor's own instruction? For crc32c.cpp and its test alone.
//
// Each takes what came before and gives what is behind these bytes, neither inverted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardbook::base {

std::uint32_t crc32c_by_tables(const unsigned char* at, std::size_t size, std::uint32_t rest);

// False in the twin for processors without such an instruction, and on those of its kind that lack it.
bool processor_sums_crc32c();
// REQUIRES: processor_sums_crc32c().
std::uint32_t crc32c_by_processor(const unsigned char* at, std::size_t size, std::uint32_t rest);

}  // namespace shardbook::base
