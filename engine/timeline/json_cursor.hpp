// timeline/json_cursor: a position in JSON text that only moves forward.
//
// The reader's hot loop: no tree, no copies, no recursion (nesting is a counter, so that a file of a
// million brackets is only a malformed file). A step that fails leaves the cursor where it stopped:
// at the end of the text, the file was cut off; before it, the text is malformed at offset().
// Grammar: RFC 8259; NaN, Infinity and raw control characters, which PyTorch has written, pass.
#pragma once

#include <cstdint>
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
  bool skip_string();

  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace shardbook::timeline
