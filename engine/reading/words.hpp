// reading/words: what are the characters of a file that a learner wrote?
//
// Notes come from any editor. UTF-8 is read, with or without a byte order mark and with either end of line; UTF-16 and
// the one-byte encodings are told apart and refused in one sentence that says what to do, for a guess would move the
// line numbers or spoil a path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.hpp"

namespace shardbook::reading {

struct Words {
  std::vector<std::string> lines;   // UTF-8, without their ends; line 1 is lines[0]
  std::string remark;               // "" or one sentence: what was taken off
};

// Errors: UTF-16, bytes that are no UTF-8 (with the first line that has one), a byte of zero.
base::Result<Words> words_of(std::string_view bytes);

// ---- Small things about lines that every rule needs ---------------------------------------------------------

std::string_view trimmed(std::string_view text);
std::string lowered(std::string_view text);
bool holds(std::string_view text, std::string_view part);
// Whether `symbol` stands in the line as a whole word: no letter, digit or _ on either side.
bool holds_symbol(std::string_view line, std::string_view symbol);
// Whether it is one: letters, digits, _ and dots between, and no digit first.
bool is_symbol(std::string_view text);

}  // namespace shardbook::reading
