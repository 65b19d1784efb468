#include "engine/base/printable.hpp"

#include <cstdint>

namespace shardbook::base {

namespace {

constexpr char hex[] = "0123456789abcdef";

// How many bytes the character at `at` takes and which it is; 0 bytes: no UTF-8 (RFC 3629: no overlong form, no half of
// a pair, none beyond 10FFFF).
int character_at(std::string_view text, std::size_t at, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) {
    code = first;
    return 1;
  }
  const int size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  constexpr std::uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  if (first < 0xC2 || first > 0xF4 || at + static_cast<std::size_t>(size) > text.size()) return 0;
  code = first & (0xFFu >> (size + 1));
  for (int i = 1; i < size; ++i) {
    const unsigned char next = byte(at + static_cast<std::size_t>(i));
    if ((next & 0xC0) != 0x80) return 0;
    code = code << 6 | (next & 0x3Fu);
  }
  return code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? 0 : size;
}

bool is_visible(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return false;
  const bool turns = code == 0x061C || (code >= 0x200E && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
                     (code >= 0x2066 && code <= 0x2069);
  return !turns;
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    std::uint32_t code = 0;
    const int size = character_at(text, at, code);
    const auto byte = static_cast<unsigned char>(text[at]);
    if (size > 0 && (is_visible(code) || (lines == Lines::kept && (code == '\n' || code == '\t')))) {
      out += text.substr(at, static_cast<std::size_t>(size));
    } else if (size > 1) {
      out += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) out += hex[code >> shift & 15];
    } else if (code == '\n' && size == 1) {
      out += "\\n";
    } else {
      out += "\\x";
      out += hex[byte >> 4];
      out += hex[byte & 15];
    }
    at += static_cast<std::size_t>(size > 0 ? size : 1);
  }
  return out;
}

}  // namespace shardbook::base
