// timeline/json_cursor: strings, numbers, skipping; see json_cursor.hpp.
#include "engine/timeline/json_cursor.hpp"

#include <limits>

namespace shardbook::timeline {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The four digits of \uXXXX, or -1.
int code_unit(std::string_view raw, std::size_t at) {
  if (at + 4 > raw.size()) return -1;
  int unit = 0;
  for (std::size_t i = at; i < at + 4; ++i) {
    const int digit = hex_value(raw[i]);
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xf0 | (code >> 18));
    out += static_cast<char>(0x80 | ((code >> 12) & 0x3f));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

}  // namespace

std::string_view decode(RawString string, std::string& scratch) {
  if (!string.escaped) return string.raw;
  scratch.clear();
  const std::string_view raw = string.raw;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      scratch += raw[i];
      continue;
    }
    const char kind = raw[++i];
    switch (kind) {
      case 'n': scratch += '\n'; break;
      case 't': scratch += '\t'; break;
      case 'r': scratch += '\r'; break;
      case 'b': scratch += '\b'; break;
      case 'f': scratch += '\f'; break;
      case 'u': {
        int unit = code_unit(raw, i + 1);
        if (unit < 0) {
          scratch += "\\u";
          break;
        }
        i += 4;
        std::uint32_t code = static_cast<std::uint32_t>(unit);
        // Two units of a surrogate pair are one character; a lone one becomes U+FFFD.
        if (code >= 0xd800 && code < 0xdc00 && i + 2 < raw.size() && raw[i + 1] == '\\' && raw[i + 2] == 'u') {
          const int low = code_unit(raw, i + 3);
          if (low >= 0xdc00 && low < 0xe000) {
            code = 0x10000 + ((code - 0xd800) << 10) + static_cast<std::uint32_t>(low - 0xdc00);
            i += 6;
          }
        }
        if (code >= 0xd800 && code < 0xe000) code = 0xfffd;
        append_utf8(scratch, code);
        break;
      }
      default: scratch += kind;
    }
  }
  return scratch;
}

bool JsonCursor::scaled(std::int64_t& value, int decimals) {
  too_large_ = false;
  skip_blanks();
  const bool quoted = at_ != end_ && *at_ == '"';
  if (quoted) ++at_;
  const char* first = at_;
  const bool negative = at_ != end_ && *at_ == '-';
  if (negative) ++at_;

  // The digits, as one integer: value = digits * 10^power. What exceeds 19 digits is only counted.
  constexpr std::uint64_t full = (std::numeric_limits<std::uint64_t>::max() - 9) / 10;
  std::uint64_t digits = 0;
  std::int64_t power = decimals;
  bool any = false;
  for (; at_ != end_ && is_digit(*at_); ++at_, any = true) {
    if (digits <= full) digits = digits * 10 + static_cast<std::uint64_t>(*at_ - '0');
    else ++power;
  }
  if (at_ != end_ && *at_ == '.') {
    for (++at_; at_ != end_ && is_digit(*at_); ++at_, any = true) {
      if (digits > full) continue;
      digits = digits * 10 + static_cast<std::uint64_t>(*at_ - '0');
      --power;
    }
  }
  if (at_ != end_ && any && (*at_ == 'e' || *at_ == 'E')) {
    ++at_;
    const bool minus = at_ != end_ && *at_ == '-';
    if (at_ != end_ && (*at_ == '-' || *at_ == '+')) ++at_;
    std::int64_t exponent = 0;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      if (exponent < 100000) exponent = exponent * 10 + (*at_ - '0');
    }
    power += minus ? -exponent : exponent;
  }
  // A number that touches the end of the text may go on in what was cut off.
  if (at_ == end_) return false;
  if (!any || (quoted && *at_ != '"')) {
    at_ = first;
    return false;
  }
  if (quoted) ++at_;

  // Scale; fail on what does not fit.
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  for (; power < 0 && digits != 0; ++power) digits /= 10;
  for (; power > 0 && digits != 0; --power) {
    too_large_ = digits > largest / 10;
    if (too_large_) break;
    digits *= 10;
  }
  too_large_ = too_large_ || digits > largest;
  if (too_large_) {
    at_ = first;
    return false;
  }
  value = negative ? -static_cast<std::int64_t>(digits) : static_cast<std::int64_t>(digits);
  return true;
}

bool JsonCursor::skip_value() {
  int depth = 0;
  do {
    skip_blanks();
    if (at_ == end_) return false;
    switch (*at_) {
      case '"':
        if (RawString ignored; !string(ignored)) return false;
        break;
      case '{':
      case '[':
        ++depth;
        ++at_;
        break;
      case '}':
      case ']':
        if (depth == 0) return false;
        --depth;
        ++at_;
        break;
      case ',':
      case ':':
        if (depth == 0) return false;
        ++at_;
        break;
      default: {
        // A number or a word: up to what cannot be part of it.
        const char* first = at_;
        while (at_ != end_ && (is_digit(*at_) || (*at_ >= 'a' && *at_ <= 'z') || (*at_ >= 'A' && *at_ <= 'Z') ||
                               *at_ == '-' || *at_ == '+' || *at_ == '.')) {
          ++at_;
        }
        if (at_ == end_ || at_ == first) return false;
      }
    }
  } while (depth > 0);
  return true;
}

}  // namespace shardbook::timeline
