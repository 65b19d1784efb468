#include "engine/base/crc32c.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "engine/base/crc32c_forms.hpp"

namespace shardbook::base {

namespace {

static_assert(std::endian::native == std::endian::little, "the first byte must be the lowest");

constexpr std::uint32_t polynomial = 0x82f63b78;   // Castagnoli's, bits reversed

using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// tables[k][b]: what a byte b leaves behind k more bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? polynomial : 0);
    tables[0][byte] = rest;
  }
  for (std::size_t behind = 1; behind < 8; ++behind) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t one_less = tables[behind - 1][byte];
      tables[behind][byte] = (one_less >> 8) ^ tables[0][one_less & 255];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

}  // namespace

std::uint32_t crc32c_by_tables(const unsigned char* at, std::size_t size, std::uint32_t rest) {
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    word ^= rest;
    rest = tables[7][word & 255] ^ tables[6][word >> 8 & 255] ^ tables[5][word >> 16 & 255] ^ tables[4][word >> 24 & 255] ^
           tables[3][word >> 32 & 255] ^ tables[2][word >> 40 & 255] ^ tables[1][word >> 48 & 255] ^ tables[0][word >> 56];
  }
  for (; size > 0; --size, ++at) rest = (rest >> 8) ^ tables[0][(rest ^ *at) & 255];
  return rest;
}

std::uint32_t crc32c(const void* bytes, std::size_t size, std::uint32_t before) {
  static const auto form = processor_sums_crc32c() ? crc32c_by_processor : crc32c_by_tables;
  return ~form(static_cast<const unsigned char*>(bytes), size, ~before);
}

}  // namespace shardbook::base
