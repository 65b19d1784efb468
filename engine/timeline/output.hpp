// timeline/output: a file that appears whole or not at all.
//
// Text is gathered in a buffer and written to PATH.tmp; commit() renames it to PATH. If anything
// fails (a full disk, a folder without rights) the temporary file is removed and commit() says why.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.hpp"

namespace shardbook::timeline {

class Output {
 public:
  explicit Output(std::string path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Output& operator<<(std::string_view text) {
    if (buffer_.size() + text.size() > limit) flush();
    buffer_.append(text);
    return *this;
  }
  Output& operator<<(std::int64_t value) {
    char digits[24];
    const auto [end, code] = std::to_chars(digits, digits + sizeof digits, value);
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }
  // Nanoseconds as microseconds with three decimals.
  Output& microseconds(std::int64_t ns);
  // A JSON string with its quotes.
  Output& quoted(std::string_view text);

  base::Status commit();

 private:
  static constexpr std::size_t limit = std::size_t{1} << 20;
  void flush();

  std::string path_, temporary_;
  std::string buffer_;
  int file_ = -1;
  int failure_ = 0;           // errno of the first failure
};

}  // namespace shardbook::timeline
