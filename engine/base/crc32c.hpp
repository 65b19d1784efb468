// base/crc32c: was a byte of this changed since?
//
// The CRC with Castagnoli's polynomial, as iSCSI, ext4 and many stores of data have it (RFC 3720, B.4). It finds every
// change that lies within 32 bits in a row, so any changed byte, and another one with a chance of 1 in 2^32 to be missed.
// It proves nothing against who changes on purpose: that is sha256's. Most processors have an instruction for it; else tables
// do eight bytes at a time ("slicing by 8": Kounavis and Berry 2005). Either is far faster than sha256.
#pragma once

#include <cstddef>
#include <cstdint>

namespace shardbook::base {

// Of `size` bytes; `before` is the sum of what came before them (0: nothing did).
std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before = 0);

}  // namespace shardbook::base
