// report/html: escaping and small builders; see html.hpp.
#include "engine/report/html.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace shardbook::report {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";   // U+FFFD

// The code point that begins at `at`, and its bytes; no bytes if there is none.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;
};
Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + bytes > text.size()) return {};
  char32_t code = first & (0x7f >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  // Longer than it need be, a half of a pair, or beyond Unicode.
  const char32_t least = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (code < least || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return {};
  return {code, bytes};
}

bool is_harmful(char32_t code) {
  if (code < 0x20) return code != '\n' && code != '\t';
  if (code >= 0x7f && code < 0xa0) return true;
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfffe || code == 0xffff;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.bytes == 0 || is_harmful(character.code)) {
      out += replacement;
    } else if (character.code == '&') {
      out += "&amp;";
    } else if (character.code == '<') {
      out += "&lt;";
    } else if (character.code == '>') {
      out += "&gt;";
    } else if (character.code == '"') {
      out += "&quot;";
    } else if (character.code == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(at, character.bytes);
    }
    at += character.bytes == 0 ? 1 : character.bytes;
  }
  return out;
}

std::size_t characters(std::string_view text) {
  std::size_t count = 0;
  for (char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::string shortened(std::string_view text, std::size_t most) {
  const std::size_t count = characters(text);
  if (count <= most) return std::string(text);
  const std::size_t head = (most - 1) * 2 / 3, tail_from = count - (most - 1 - head);
  std::string out;
  std::size_t index = 0;   // of the character that the byte belongs to, from 1
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++index == head + 1) out += "…";
    if (index <= head || index > tail_from) out += c;
  }
  return out;
}

std::string element(std::string_view tag, Attributes attributes, std::string_view inside) {
  std::string out = "<";
  out += tag;
  for (const auto& [name, value] : attributes) {
    out += ' ';
    out += name;
    out += "=\"" + escaped(value) + '"';
  }
  out += '>';
  out += inside;
  out += "</";
  out += tag;
  return out += '>';
}

std::string milliseconds(base::Nanoseconds ns) {
  const auto size = ns < 0 ? 0 - static_cast<std::uint64_t>(ns) : static_cast<std::uint64_t>(ns);
  char digits[48];
  std::snprintf(digits, sizeof digits, "%s%llu.%06llu", ns < 0 ? "-" : "", static_cast<unsigned long long>(size / 1'000'000),
                static_cast<unsigned long long>(size % 1'000'000));
  return digits;
}

std::string milliseconds_data(base::Nanoseconds ns) {
  return element("data", {{"value", std::to_string(ns)}}, milliseconds(ns));
}

std::string percent(base::Nanoseconds part, base::Nanoseconds whole) {
  if (whole == 0) return "–";
  char digits[48];
  std::snprintf(digits, sizeof digits, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return digits;
}

std::string coordinate(double value) {
  const long long tenths = std::llround(10 * value);
  std::string out = (tenths < 0 ? "-" : "") + std::to_string(std::llabs(tenths) / 10);
  if (tenths % 10 != 0) out += "." + std::to_string(std::llabs(tenths) % 10);
  return out;
}

}  // namespace shardbook::report
