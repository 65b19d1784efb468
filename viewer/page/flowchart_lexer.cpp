// page/flowchart_lexer: rules in mermaid's order; see flowchart_lexer.hpp.
#include "viewer/page/flowchart_lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "viewer/page/diagram_source.hpp"

namespace shardbook::page {

namespace {

enum class State { initial, string, markdown, text, slash_text, ellipse_text, edge_text, thick_text, dotted_text, direction, click,
                   call_name, call_arguments, data, data_string, accessible_line, accessible_block };

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f'; }

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

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<FlowWord> run() {
    while (at_ < source_.size() && (words_.empty() || words_.back().kind != FlowToken::invalid)) step();
    if (words_.empty() || words_.back().kind != FlowToken::invalid) {
      // An error there is one of the last line that says something.
      words_.push_back({FlowToken::end_of_file, {}, std::min(source_.find_last_not_of(" \t\n"), source_.size())});
    }
    return std::move(words_);
  }

 private:
  char at(std::size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  bool here(std::string_view text) const { return source_.compare(at_, text.size(), text) == 0; }
  // As a keyword: what follows is not part of a word.
  bool keyword(std::string_view text) const { return here(text) && !is_word_char(at(at_ + text.size())); }
  // Remembered, as several rules ask it at each blank.
  std::size_t blanks_from(std::size_t from) const {
    if (from >= blanks_begin_ && from < blanks_end_) return blanks_end_;
    std::size_t i = from;
    while (i < source_.size() && is_blank(source_[i])) ++i;
    blanks_begin_ = from;
    blanks_end_ = i;
    return i;
  }
  State state() const { return states_.back(); }
  void push(State state) { states_.push_back(state); }
  void pop() {
    if (states_.size() > 1) states_.pop_back();
  }
  bool take(FlowToken kind, std::size_t end) {
    words_.push_back({kind, source_.substr(at_, end - at_), at_});
    at_ = end;
    return true;
  }
  bool skip(std::size_t end) {
    at_ = end;
    return true;
  }
  bool open(FlowToken kind, std::size_t length, State inside) {
    push(inside);
    return take(kind, at_ + length);
  }
  bool close(FlowToken kind, std::size_t length) {
    pop();
    return take(kind, at_ + length);
  }

  void step();
  bool in_quotes_or_data();
  bool quote();
  bool initial_keywords();
  bool direction_of_header();
  bool direction_line();
  bool link_id();
  bool punctuation();
  bool link();
  std::size_t normal_link_end(char line, std::size_t from) const;
  std::size_t dotted_link_end(std::size_t from) const;
  bool invisible_link();
  bool bracket();
  bool closing_bracket();
  bool name();

  std::string_view source_;
  std::size_t at_ = 0;
  std::vector<State> states_{State::initial};
  std::vector<FlowWord> words_;
  bool header_seen_ = false;
  // Looked up once a line and once a run of non-blanks, so that the work stays linear.
  std::size_t line_end_ = 0;
  std::array<std::size_t, 5> direction_end_{}, direction_begin_{};
  std::size_t run_end_ = 0, run_at_ = 0;
  mutable std::size_t blanks_begin_ = 0, blanks_end_ = 0;
};

// --- Inside quotes, parentheses of a call, shape data ------------------------------------------------
bool Lexer::in_quotes_or_data() {
  const auto until = [&](std::string_view stops) { return std::min(source_.find_first_of(stops, at_), source_.size()); };
  switch (state()) {
    case State::string:
      if (at(at_) == '"') {
        pop();
        return skip(at_ + 1);
      }
      return take(FlowToken::string, until("\""));
    case State::markdown: {
      const std::size_t end = until("`\"");
      if (end > at_) return take(FlowToken::markdown, end);
      if (here("`\"")) {
        pop();
        return skip(at_ + 2);
      }
      return false;
    }
    case State::call_name:
      if (at(at_) == '(') {
        const std::size_t inside = blanks_from(at_ + 1);
        pop();
        if (at(inside) == ')') return skip(inside + 1);
        push(State::call_arguments);
        return skip(at_ + 1);
      }
      return take(FlowToken::call, until("("));
    case State::call_arguments:
      if (at(at_) == ')') {
        pop();
        return skip(at_ + 1);
      }
      return take(FlowToken::call_arguments, until(")"));
    case State::click:
      if (at(at_) == '"') return false;
      if (is_blank(at(at_))) {
        pop();
        return skip(at_ + 1);
      }
      return take(FlowToken::click, until(" \t\n\v\f"));
    case State::data:
      if (at(at_) == '"') return open(FlowToken::shape_data, 1, State::data_string);
      if (at(at_) == '}') {
        pop();
        return skip(at_ + 1);
      }
      if (at(at_) == '^') return false;
      return take(FlowToken::shape_data, until("}^\""));
    case State::data_string:
      if (at(at_) == '"') return close(FlowToken::shape_data, 1);
      return take(FlowToken::shape_data, until("\""));
    case State::accessible_line:
      pop();
      return take(FlowToken::accessible, until("\n"));
    case State::accessible_block:
      if (at(at_) == '}') {
        pop();
        return skip(at_ + 1);
      }
      return take(FlowToken::accessible, until("}"));
    default: return false;
  }
}

bool Lexer::quote() {
  if (at(at_) != '"') return false;
  const bool is_markdown = at(at_ + 1) == '`';
  push(is_markdown ? State::markdown : State::string);
  return skip(at_ + (is_markdown ? 2 : 1));
}

// --- Keywords ----------------------------------------------------------------------------------------
bool Lexer::initial_keywords() {
  for (const std::string_view word : {std::string_view("style"), std::string_view("default"), std::string_view("linkStyle"),
                                      std::string_view("interpolate"), std::string_view("classDef"), std::string_view("class")}) {
    if (!keyword(word)) continue;
    const FlowToken kind = word == "style" ? FlowToken::style : word == "default" ? FlowToken::default_
                         : word == "linkStyle" ? FlowToken::link_style : word == "interpolate" ? FlowToken::interpolate
                         : word == "classDef" ? FlowToken::class_def : FlowToken::class_;
    return take(kind, at_ + word.size());
  }
  if (here("href") && is_blank(at(at_ + 4))) return take(FlowToken::href, at_ + 5);
  if (here("click") && is_blank(at(at_ + 5))) {
    push(State::click);
    return skip(blanks_from(at_ + 5));
  }
  for (const std::string_view word : {std::string_view("flowchart-elk"), std::string_view("graph"), std::string_view("flowchart")}) {
    if (!keyword(word)) continue;
    if (!header_seen_) push(State::direction);
    header_seen_ = true;
    return take(FlowToken::graph, at_ + word.size());
  }
  if (keyword("subgraph")) return take(FlowToken::subgraph, at_ + 8);
  if (keyword("end")) return take(FlowToken::end, blanks_from(at_ + 3));
  for (const std::string_view word : {std::string_view("_self"), std::string_view("_blank"), std::string_view("_parent"), std::string_view("_top")}) {
    if (keyword(word)) return take(FlowToken::target, at_ + word.size());
  }
  return false;
}

bool Lexer::direction_of_header() {
  const std::size_t word = blanks_from(at_);
  const std::size_t newline = source_.substr(0, word).rfind('\n');
  if (newline != std::string_view::npos && newline >= at_) {
    pop();
    return take(FlowToken::no_direction, newline + 1);
  }
  for (const std::string_view name : {std::string_view("LR"), std::string_view("RL"), std::string_view("TB"), std::string_view("BT"),
                                      std::string_view("TD"), std::string_view("BR"), std::string_view("<"), std::string_view(">"),
                                      std::string_view("^"), std::string_view("v")}) {
    if (source_.compare(word, name.size(), name) != 0) continue;
    if (is_word_char(name.back()) && is_word_char(at(word + name.size()))) continue;
    pop();
    at_ = word;
    return take(FlowToken::direction_header, word + name.size());
  }
  return false;
}

// `direction LR`, and whatever stands before it on its line.
bool Lexer::direction_line() {
  constexpr std::array<std::string_view, 5> names{"TB", "BT", "RL", "LR", "TD"};
  if (at_ >= line_end_) {
    line_end_ = std::min(source_.find('\n', at_), source_.size()) + 1;
    direction_begin_.fill(std::string_view::npos);
    const std::string_view line = source_.substr(0, line_end_);
    for (std::size_t i = line.find("direction", at_); i != std::string_view::npos; i = line.find("direction", i + 1)) {
      const std::size_t word = blanks_from(i + 9);
      for (std::size_t d = 0; d < names.size(); ++d) {
        if (word == i + 9 || source_.compare(word, 2, names[d]) != 0) continue;
        direction_begin_[d] = i;
        direction_end_[d] = std::min(source_.find('\n', word), source_.size());
      }
    }
  }
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (direction_begin_[d] == std::string_view::npos || direction_begin_[d] < at_) continue;
    const std::size_t begin = at_, end = direction_end_[d];
    words_.push_back({FlowToken::direction, names[d], begin});
    return skip(end);
  }
  return false;
}

// `e1@` before a link: up to the last @ of the run of non-blanks, unless a brace or quote follows it.
bool Lexer::link_id() {
  if (at_ >= run_end_) {
    run_end_ = std::min(source_.find_first_of(" \t\n\v\f\"", at_), source_.size());
    run_at_ = std::string_view::npos;
    for (std::size_t i = run_end_; i > at_; --i) {
      if (source_[i - 1] == '@' && i < source_.size() && at(i) != '{' && at(i) != '"') {
        run_at_ = i - 1;
        break;
      }
    }
    if (run_end_ == at_) run_end_ = at_ + 1;
  }
  if (run_at_ == std::string_view::npos || run_at_ <= at_ || is_blank(at(at_))) return false;
  return take(FlowToken::link_id, run_at_ + 1);
}

bool Lexer::punctuation() {
  const char c = at(at_);
  if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
    std::size_t end = at_;
    while (std::isdigit(static_cast<unsigned char>(at(end))) != 0) ++end;
    return take(FlowToken::number, end);
  }
  if (here(":::")) return take(FlowToken::class_separator, at_ + 3);
  switch (c) {
    case '#': return take(FlowToken::hash, at_ + 1);
    case ':': return take(FlowToken::colon, at_ + 1);
    case '&': return take(FlowToken::ampersand, at_ + 1);
    case ';': return take(FlowToken::semicolon, at_ + 1);
    case ',': return take(FlowToken::comma, at_ + 1);
    case '*': return take(FlowToken::star, at_ + 1);
    default: return false;
  }
}

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
    const bool joining = (c == '-' && end + 1 < source_.size() && next != '>' && next != '-' && next != '.') || (c == '=' && next != '=');
    if (!plain && !joining) break;
  }
  if (end > at_) return take(FlowToken::word, end);
  if (at(at_) == '-') return take(FlowToken::minus, at_ + 1);
  std::size_t after = at_;
  const std::uint32_t code = next_code_point(source_, after);
  return is_letter(code) && code >= 0x80 && take(FlowToken::unicode, after);
}

// --- One word ----------------------------------------------------------------------------------------
void Lexer::step() {
  const std::size_t before = at_;
  const auto accessible = [&](std::string_view word, char open_with, State inside) {
    if (!here(word)) return false;
    const std::size_t sign = blanks_from(at_ + word.size());
    if (at(sign) != open_with) return false;
    push(inside);
    return skip(blanks_from(sign + 1));
  };
  const bool initial = state() == State::initial;
  bool found = false;
  if (initial) {
    found = accessible("accTitle", ':', State::accessible_line) || accessible("accDescr", ':', State::accessible_line) ||
            accessible("accDescr", '{', State::accessible_block);
    if (!found && here("@{")) found = open(FlowToken::shape_data, 2, State::data);
    if (!found && here("call") && is_blank(at(at_ + 4))) {
      push(State::call_name);
      found = skip(blanks_from(at_ + 4));
    }
  }
  found = found || in_quotes_or_data() || quote();
  if (!found && initial) found = initial_keywords() || direction_line() || link_id() || punctuation();
  if (!found && state() == State::direction) found = direction_of_header();
  found = found || link() || invisible_link() || closing_bracket() || bracket();
  if (!found && state() == State::text) {
    const std::size_t end = std::min(source_.find_first_of("[](){}|\"", at_), source_.size());
    found = end > at_ && take(FlowToken::text, end);
  }
  if (!found && initial && at(at_) == '\n') {
    std::size_t end = at_;
    while (at(end) == '\n') ++end;
    found = take(FlowToken::newline, end);
  }
  if (!found && initial && is_blank(at(at_))) found = take(FlowToken::space, at_ + 1);
  if (!found || at_ < before) words_.push_back({FlowToken::invalid, source_.substr(before, 1), before});
}

}  // namespace

std::vector<FlowWord> flowchart_words(std::string_view source) { return Lexer(source).run(); }

std::string description_of(const FlowWord& word) {
  switch (word.kind) {
    case FlowToken::newline: return "the end of the line";
    case FlowToken::end_of_file: return "the end of the diagram";
    case FlowToken::space: return "a blank";
    case FlowToken::string: return "a quoted text";
    case FlowToken::end: return "`end`, which is a keyword";
    default: break;
  }
  const std::string_view shown = trimmed(word.text.substr(0, 24));
  std::string quoted("`");
  quoted.append(shown);
  quoted += '`';
  return quoted;
}

}  // namespace shardbook::page
