// diagram/flowchart_links: the lexer's rules for links, brackets and names; see flowchart_lexer.hpp.
#include <algorithm>
#include <cctype>

#include "engine/diagram/diagram_source.hpp"
#include "engine/diagram/flowchart_rules.hpp"

namespace shardbook::diagram::flowchart {

namespace {

// Letters beyond ASCII that may stand in a name: near to mermaid's table of ranges; no signs, arrows, blanks or emoji.
bool is_letter(std::uint32_t code) {
  if (code == 0xAA || code == 0xB5 || code == 0xBA) return true;
  if (code < 0xC0 || code == 0xD7 || code == 0xF7) return false;
  if (code >= 0x300 && code < 0x370) return false;
  if (code >= 0x2000 && code < 0x2C00) return (code >= 0x2100 && code < 0x2140) || code == 0x2071 || (code >= 0x207F && code < 0x20A0);
  if (code >= 0x2E00 && code < 0x3005) return code == 0x2E2F;
  return code < 0xD800 || (code >= 0xF900 && code < 0xFE00) || (code >= 0xFE70 && code <= 0xFFDC && code < 0xFF00) ||
         (code >= 0xFF21 && code <= 0xFF3A) || (code >= 0xFF41 && code <= 0xFF5A) || (code >= 0xFF66 && code <= 0xFFDC);
}

}  // namespace

// --- Links -------------------------------------------------------------------------------------------
// The end of `--->` and its like made of `line` from `from`, blanks after it included; npos if there is none.
std::size_t Lexer::normal_link_end(char line, std::size_t from) const {
  std::size_t i = from;
  if (at(i) == 'x' || at(i) == 'o' || at(i) == '<') ++i;
  std::size_t end = i;
  while (at(end) == line) ++end;
  if (end - i < 2) return std::string_view::npos;
  const bool head = at(end) == '>' || at(end) == 'x' || at(end) == 'o';
  if (head) return blanks_from(end + 1);
  return end - i >= 3 ? blanks_from(end) : std::string_view::npos;
}

std::size_t Lexer::dotted_link_end(std::size_t from) const {
  std::size_t i = from;
  if (at(i) == 'x' || at(i) == 'o' || at(i) == '<') ++i;
  if (at(i) == '-') ++i;
  const std::size_t dots = i;
  while (at(i) == '.') ++i;
  if (i == dots || at(i) != '-') return std::string_view::npos;
  ++i;
  if (at(i) == '>' || at(i) == 'x' || at(i) == 'o') ++i;
  return blanks_from(i);
}

bool Lexer::link() {
  const State now = state();
  const std::size_t first = blanks_from(at_);
  const bool with_head = at(first) == 'x' || at(first) == 'o' || at(first) == '<';
  const std::size_t line = first + (with_head ? 1 : 0);

  if (now == State::initial || now == State::edge_text) {
    const std::size_t end = normal_link_end('-', first);
    if (end != std::string_view::npos) {
      pop();
      return take(FlowToken::link, end);
    }
    if (now == State::initial && source_.compare(line, 2, "--") == 0) {
      push(State::edge_text);
      return take(FlowToken::start_link, blanks_from(line + 2));
    }
    if (now == State::edge_text) return here("--") ? false : take(FlowToken::edge_text, at_ + 1);
  }
  if (now == State::initial || now == State::thick_text) {
    const std::size_t end = normal_link_end('=', first);
    if (end != std::string_view::npos) {
      pop();
      return take(FlowToken::link, end);
    }
    if (now == State::initial && source_.compare(line, 2, "==") == 0) {
      push(State::thick_text);
      return take(FlowToken::start_link, blanks_from(line + 2));
    }
    if (now == State::thick_text) return here("==") ? false : take(FlowToken::edge_text, at_ + 1);
  }
  if (now == State::initial || now == State::dotted_text) {
    const std::size_t end = dotted_link_end(first);
    if (end != std::string_view::npos) {
      pop();
      return take(FlowToken::link, end);
    }
    if (now == State::initial && source_.compare(line, 2, "-.") == 0) {
      push(State::dotted_text);
      return take(FlowToken::start_link, blanks_from(line + 2));
    }
    if (now == State::dotted_text) {
      // A run of dots that ends no link is text as a whole; one look at it must do.
      std::size_t after = at_;
      while (at(after) == '.') ++after;
      if (after > at_ && at(after) == '-') return after > at_ + 1 && take(FlowToken::edge_text, after - 1);
      return take(FlowToken::edge_text, after > at_ ? after : at_ + 1);
    }
  }
  return false;
}

bool Lexer::invisible_link() {
  std::size_t i = blanks_from(at_);
  if (source_.compare(i, 3, "~~~") != 0) return false;
  while (at(i) == '~') ++i;
  return take(FlowToken::link, blanks_from(i));
}

// --- Brackets ----------------------------------------------------------------------------------------
bool Lexer::closing_bracket() {
  switch (state()) {
    case State::ellipse_text: {
      const char c = at(at_);
      if ((c == '-' || c == '/' || c == ')') && at(at_ + 1) == ')') return close(FlowToken::ellipse_end, 2);
      return std::string_view("()[]{}").find(c) == std::string_view::npos && take(FlowToken::text, at_ + 1);
    }
    case State::slash_text: {
      const char c = at(at_);
      if (at(at_ + 1) == ']' && std::string_view("\\(?=])").find(c) != std::string_view::npos) return close(FlowToken::backslash_end, 2);
      if (c == '/' && at(at_ + 1) == ']') return close(FlowToken::slash_end, 2);
      if (c == '/' || c == '\\') return take(FlowToken::text, at_ + 1);
      const std::size_t end = std::min(source_.find_first_of("\\[](){}/", at_), source_.size());
      // Quotes end a text only where a rule above them says so: not in here, but for one at its begin.
      return end > at_ && take(FlowToken::text, end);
    }
    case State::text: {
      if (here("])")) return close(FlowToken::stadium_end, 2);
      if (here("]]")) return close(FlowToken::subroutine_end, 2);
      if (here(")]")) return close(FlowToken::cylinder_end, 2);
      if (here(")))")) return close(FlowToken::double_end, 3);
      switch (at(at_)) {
        case '|': return close(FlowToken::pipe, 1);
        case ')': return close(FlowToken::round_end, 1);
        case ']': return close(FlowToken::square_end, 1);
        case '}': return close(FlowToken::brace_end, 1);
        default: return false;
      }
    }
    default: return false;
  }
}

bool Lexer::bracket() {
  const bool initial = state() == State::initial;
  if (here("(-")) return open(FlowToken::ellipse_begin, 2, State::ellipse_text);
  if (here("([")) return open(FlowToken::stadium_begin, 2, State::text);
  if (here("[[")) return open(FlowToken::subroutine_begin, 2, State::text);
  if (initial && here("[|")) return take(FlowToken::properties_begin, at_ + 2);
  if (initial && here(">")) return open(FlowToken::flag_begin, 1, State::text);
  if (here("[(")) return open(FlowToken::cylinder_begin, 2, State::text);
  if (here("(((")) return open(FlowToken::double_begin, 3, State::text);
  if (here("[/")) return open(FlowToken::slash_begin, 2, State::slash_text);
  if (here("[\\")) return open(FlowToken::backslash_begin, 2, State::slash_text);
  if (initial && here("<")) return take(FlowToken::tag_begin, at_ + 1);
  if (initial && here("^")) return take(FlowToken::up, at_ + 1);
  if (initial && keyword("v")) return take(FlowToken::down, at_ + 1);
  if (initial && name()) return true;
  switch (at(at_)) {
    case '|': return open(FlowToken::pipe, 1, State::text);
    case '(': return open(FlowToken::round_begin, 1, State::text);
    case '[': return open(FlowToken::square_begin, 1, State::text);
    case '{': return open(FlowToken::brace_begin, 1, State::text);
    default: return false;
  }
}

bool Lexer::name() {
  std::size_t end = at_;
  for (; end < source_.size(); ++end) {
    const char c = source_[end];
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                       std::string_view("!\"#$%&'*+.`?\\_/").find(c) != std::string_view::npos;
    const char next = at(end + 1);
    // (Its grammar also has '=' before no other '=', but the lexer made of it takes none.)
    const bool joining = c == '-' && end + 1 < source_.size() && next != '>' && next != '-' && next != '.';
    if (!plain && !joining) break;
  }
  if (end > at_) return take(FlowToken::word, end);
  if (at(at_) == '-') return take(FlowToken::minus, at_ + 1);
  std::size_t after = at_;
  const std::uint32_t code = next_code_point(source_, after);
  return is_letter(code) && code >= 0x80 && take(FlowToken::unicode, after);
}

}  // namespace shardbook::diagram::flowchart
