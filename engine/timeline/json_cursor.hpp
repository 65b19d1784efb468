// timeline/json_cursor: a position in JSON text that only moves forward.
//
// The reader's hot loop: no tree, no copies, no recursion (nesting is a counter, so that a file of a
// million brackets is only a malformed file). A step that fails leaves the cursor where it stopped:
// at the end of the text, the file was cut off; before it, the text is malformed at offset().
// Grammar: RFC 8259; NaN, Infinity and raw control characters, which PyTorch has written, pass.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace shardbook::timeline {

// The text between two quotes, as it stands in the file.
struct RawString {
  std::string_view raw;
  bool escaped = false;      // holds a backslash, so decode() differs from raw
};

// The text itself, escapes resolved to UTF-8; `scratch` holds it if it had any.
std::string_view decode(RawString string, std::string& scratch);

class JsonCursor {
 public:
  explicit JsonCursor(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  // All of the text, from its first byte.
  std::string_view text() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  std::int64_t offset() const { return at_ - begin_; }
  // Whether what failed was a number at offset() that no 64 bits hold.
  bool too_large() const { return too_large_; }
  bool at_end() const { return at_ == end_; }
  void move_to(std::int64_t offset) { at_ = begin_ + offset; }

  // The next character that is no blank, not taken; '\0' at the end.
  char peek() {
    skip_blanks();
    return at_ == end_ ? '\0' : *at_;
  }
  // Takes this character, after blanks.
  bool take(char wanted) {
    skip_blanks();
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }

  // "..." with its quotes.
  bool string(RawString& value);
  // A key and its colon.
  bool key(std::string_view& name);
  // A number in microseconds, as whole nanoseconds; digits beyond the third decimal are cut off.
  // "1", "1.5", "1.5e3" and the same between quotes. Fails on what does not fit 63 bits.
  bool microseconds(std::int64_t& ns) { return scaled(ns, 3); }
  // An integer; a fraction is cut off.
  bool integer(std::int64_t& value) { return scaled(value, 0); }
  // Any value, whatever it holds.
  bool skip_value();

 private:
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool scaled(std::int64_t& value, int decimals);

  const char* begin_;
  const char* at_;
  const char* end_;
  bool too_large_ = false;
};

// --- Strings, inline because they are most of the work ---------------------------------------------

// Marks the bytes of a word that equal `byte`; the lowest mark is exact (the classic test for a zero
// byte, on word ^ byte).
constexpr std::uint64_t each_byte(unsigned char byte) { return 0x0101010101010101ull * byte; }
constexpr std::uint64_t marks_of(std::uint64_t word, unsigned char byte) {
  const std::uint64_t x = word ^ each_byte(byte);
  return (x - each_byte(0x01)) & ~x & each_byte(0x80);
}

// The first quote or backslash, or `end`.
inline const char* find_quote(const char* at, const char* end) {
  static_assert(std::endian::native == std::endian::little, "the first byte must be the lowest");
  for (; end - at >= 8; at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    const std::uint64_t marks = marks_of(word, '"') | marks_of(word, '\\');
    if (marks != 0) return at + std::countr_zero(marks) / 8;
  }
  while (at != end && *at != '"' && *at != '\\') ++at;
  return at;
}

inline bool JsonCursor::string(RawString& value) {
  if (!take('"')) return false;
  const char* first = at_;
  value.escaped = false;
  while (true) {
    at_ = find_quote(at_, end_);
    if (at_ == end_) return false;
    if (*at_ == '"') break;
    value.escaped = true;
    if (end_ - at_ < 2) {
      at_ = end_;
      return false;
    }
    at_ += 2;
  }
  value.raw = std::string_view(first, static_cast<std::size_t>(at_ - first));
  ++at_;
  return true;
}

inline bool JsonCursor::key(std::string_view& name) {
  RawString raw;
  if (!string(raw)) return false;
  name = raw.raw;
  return take(':');
}

}  // namespace shardbook::timeline
