// program/file_form: the head of a record's file, for those who write and read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardbook::program {

inline constexpr char magic[] = "SHBKPROG";
inline constexpr std::size_t magic_bytes = 8;
inline constexpr std::uint32_t version = 2;         // 1: commands without the line that planned them
inline constexpr std::size_t head_bytes = magic_bytes + 4 + 8 + 8;  // magic, version, length, hash of what follows

inline std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t sum = 1469598103934665603ull;
  for (char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ull;
  return sum;
}

inline void put_fixed(std::string& out, std::uint64_t value, int bytes) {
  for (int byte = 0; byte < bytes; ++byte) out.push_back(static_cast<char>(value >> (8 * byte) & 0xff));
}

inline std::uint64_t get_fixed(std::string_view in, int bytes) {
  std::uint64_t value = 0;
  for (int byte = 0; byte < bytes; ++byte) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(in[byte])) << (8 * byte);
  }
  return value;
}

}  // namespace shardbook::program
