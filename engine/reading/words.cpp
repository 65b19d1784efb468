#include "engine/reading/words.hpp"

#include <algorithm>
#include <cctype>

namespace shardbook::reading {

using base::Error;
using base::text;

namespace {

bool is_word_letter(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

// How many bytes the UTF-8 character at `at` has; 0 where it is none (RFC 3629: no overlong forms, no surrogates).
std::size_t character_at(std::string_view bytes, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0u) == 0x80u; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF && follows(1)) return 2;
  if ((first & 0xF0u) == 0xE0u && follows(1) && follows(2)) {
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4 && follows(1) && follows(2) && follows(3)) {
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return 4;
  }
  return 0;
}

}  // namespace

base::Result<Words> words_of(std::string_view bytes) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    return Error{"is UTF-16: save it as UTF-8 (in Notepad: Save as, Encoding; elsewhere `iconv -f UTF-16 -t UTF-8`)"};
  }
  Words words;
  if (bytes.starts_with("\xEF\xBB\xBF")) {
    bytes.remove_prefix(3);
    words.remark = "begins with a byte order mark, which was left out; save it as UTF-8 without one";
  }
  std::size_t line = 1, returns = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] == '\0') return Error{text("holds a byte of zero in line ", line, ": it is no text, or UTF-16 without its mark; save it as UTF-8")};
    const std::size_t length = character_at(bytes, at);
    if (length == 0) return Error{text("is no UTF-8 (line ", line, "), so perhaps Latin-1: save it as UTF-8 (`iconv -f LATIN1 -t UTF-8`)")};
    if (bytes[at] == '\n') ++line;
    if (bytes[at] == '\r') ++returns;
    at += length;
  }
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find_first_of("\r\n", at), bytes.size());
    words.lines.emplace_back(bytes.substr(at, end - at));
    at = end + (bytes.substr(end).starts_with("\r\n") ? 2 : 1);
  }
  if (returns > 0 && words.remark.empty()) words.remark = "has Windows' ends of line, which were read as such; other tools may show ^M";
  return words;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string lowered(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return low;
}

bool holds(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool holds_symbol(std::string_view line, std::string_view symbol) {
  for (std::size_t at = line.find(symbol); at != std::string_view::npos; at = line.find(symbol, at + 1)) {
    const std::size_t end = at + symbol.size();
    if ((at == 0 || !is_word_letter(line[at - 1])) && (end == line.size() || !is_word_letter(line[end]))) return true;
  }
  return false;
}

bool is_symbol(std::string_view text) {
  if (text.size() < 2 || std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text.front() == '.' || text.back() == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char letter) { return is_word_letter(letter) || letter == '.'; });
}

}  // namespace shardbook::reading
