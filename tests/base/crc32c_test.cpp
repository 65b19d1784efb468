// The sum is Castagnoli's, of any length, whole or in parts.
#include <gtest/gtest.h>

#include <string>

#include "engine/base/crc32c.hpp"
#include "engine/base/crc32c_forms.hpp"

namespace shardbook::base {
namespace {

// RFC 3720, B.4.
TEST(Crc32c, IsThatOfTheStandard) {
  EXPECT_EQ(crc32c("", 0), 0u);
  EXPECT_EQ(crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
}

// Bit after bit, as the definition has it.
std::uint32_t bit_by_bit(const std::string& text) {
  std::uint32_t rest = ~0u;
  for (const char byte : text) {
    rest ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1) != 0 ? 0x82f63b78u : 0u);
  }
  return ~rest;
}

TEST(Crc32c, IsTheSameInEachFormAndOfEachLength) {
  std::string text;
  for (int length = 0; length < 100; ++length) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    EXPECT_EQ(~crc32c_by_tables(bytes, text.size(), ~0u), bit_by_bit(text)) << length;
    if (processor_sums_crc32c()) {
      EXPECT_EQ(~crc32c_by_processor(bytes, text.size(), ~0u), bit_by_bit(text)) << length;
    }
    EXPECT_EQ(crc32c(text.data(), text.size()), bit_by_bit(text)) << length;
    text += static_cast<char>(length * length * 31 + 7);
  }
}

TEST(Crc32c, OfPartsIsThatOfTheWhole) {
  std::string text;
  for (int at = 0; at < 100; ++at) text += static_cast<char>(at * 37);
  const std::uint32_t whole = crc32c(text.data(), text.size());
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(text.data() + cut, text.size() - cut, crc32c(text.data(), cut)), whole) << cut;
  }
}

TEST(Crc32c, ChangesWithEachByte) {
  std::string text(64, 'a');
  const std::uint32_t before = crc32c(text.data(), text.size());
  for (char& byte : text) {
    byte = 'b';
    EXPECT_NE(crc32c(text.data(), text.size()), before);
    byte = 'a';
  }
}

}  // namespace
}  // namespace shardbook::base
