// diagram/sequence_lexer: see sequence_lexer.hpp.
#include "engine/diagram/sequence_lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/diagram/diagram_source.hpp"

namespace shardbook::diagram {

namespace {

using Kind = SequenceToken;
enum class State { initial, id, alias, line };

struct Keyword {
  std::string_view word;
  Kind kind;
  bool opens_line;      // the rest of the line is a text
  bool opens_id;        // a participant follows
};
// In mermaid's order.
constexpr std::array<Keyword, 16> first_keywords{{
    {"box", Kind::box, true, false}, {"participant", Kind::participant, false, true}, {"actor", Kind::actor_keyword, false, true},
    {"create", Kind::create, false, false}, {"destroy", Kind::destroy, false, true}, {"loop", Kind::loop, true, false},
    {"rect", Kind::rect, true, false}, {"opt", Kind::opt, true, false}, {"alt", Kind::alt, true, false}, {"else", Kind::else_, true, false},
    {"par", Kind::par, true, false}, {"par_over", Kind::par, true, false}, {"and", Kind::and_, true, false},
    {"critical", Kind::critical, true, false}, {"option", Kind::option, true, false}, {"break", Kind::break_, true, false},
}};
constexpr std::array<Keyword, 11> second_keywords{{
    {"end", Kind::end, false, false}, {"left of", Kind::left_of, false, false}, {"right of", Kind::right_of, false, false},
    {"links", Kind::links, false, false}, {"link", Kind::link, false, false}, {"properties", Kind::properties, false, false},
    {"details", Kind::details, false, false}, {"over", Kind::over, false, false}, {"note", Kind::note, false, false},
    {"activate", Kind::activate, false, true}, {"deactivate", Kind::deactivate, false, true},
}};
// Longer ones before their beginnings, as mermaid's order has the same effect.
constexpr std::array<std::string_view, 26> arrows{{
    "->>", "<<->>", "-->>", "<<-->>", "->", "-->", "-x", "--x", "-)", "--)", "--|\\", "--|/", "--\\\\", "--//", "/|--", "\\|--", "//--",
    "\\\\--", "-|\\", "-|/", "-\\\\", "-//", "/|-", "\\|-", "//-", "\\\\-",
}};
// Where these begin, a participant's name has ended.
constexpr std::array<std::string_view, 16> after_name{{
    "-x", "--x", "-)", "--)", "-|\\", "-\\", "-/", "-//", "-|/", "/|-", "\\|-", "//-", "\\\\-", "--|\\", "--", "()",
}};

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<SequenceWord> run() {
    while (at_ < source_.size()) step();
    add(Kind::newline, at_);
    // An error there is one of the last line that says something.
    words_.push_back({Kind::end_of_file, {}, std::min(source_.find_last_not_of(" \t\n"), source_.size())});
    return std::move(words_);
  }

 private:
  char at(std::size_t i) const { return i < source_.size() ? source_[i] : '\0'; }
  bool here(std::string_view text, std::size_t from) const {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (lower(at(from + i)) != text[i]) return false;
    }
    return from + text.size() <= source_.size();
  }
  bool here(std::string_view text) const { return here(text, at_); }
  bool keyword(std::string_view text) const { return here(text) && !is_word_char(at(at_ + text.size())); }
  std::size_t line_end(std::size_t from) const { return std::min(source_.find('\n', from), source_.size()); }
  std::size_t until(std::string_view stops, std::size_t from) const { return std::min(source_.find_first_of(stops, from), source_.size()); }
  void add(Kind kind, std::size_t end) {
    words_.push_back({kind, trimmed(source_.substr(at_, end - at_)), at_});
    at_ = end;
  }

  void step();
  bool skipped();
  bool number();
  void identifier();
  void alias();
  void rest_of_line();
  bool keywords();
  bool name();
  bool arrow();
  bool accessible();

  std::string_view source_;
  std::size_t at_ = 0;
  State state_ = State::initial;
  std::vector<SequenceWord> words_;
};

// Blanks and comments.
bool Lexer::skipped() {
  const char c = at(at_);
  if (is_blank(c) && (state_ == State::initial || c != '\n')) {
    while (at_ < source_.size() && is_blank(at(at_)) && at(at_) != '\n') ++at_;
    return true;
  }
  if (c == '#') {
    at_ = line_end(at_);
    return true;
  }
  if (state_ != State::initial) return false;
  const bool comment = here("%%") && at(at_ + 2) != '{';
  const bool after_one = c != '}' && c != '\n' && at(at_ + 1) == '%' && at(at_ + 2) == '%';
  if (!comment && !after_one) return false;
  at_ = line_end(at_);
  return true;
}

bool Lexer::number() {
  std::size_t end = at_;
  while (std::isdigit(static_cast<unsigned char>(at(end))) != 0) ++end;
  const bool whole = end > at_;
  if (at(end) == '.' && std::isdigit(static_cast<unsigned char>(at(end + 1))) != 0) {
    end += 2;
    if (std::isdigit(static_cast<unsigned char>(at(end))) != 0) ++end;
  } else if (!whole) {
    return false;
  }
  if (at(end) != ' ' && at(end) != '\n') return false;
  add(Kind::number, end);
  return true;
}

// A participant after `participant`, `activate` and so on.
void Lexer::identifier() {
  const std::size_t line = line_end(at_);
  if (here("@{")) {
    const std::size_t close = std::min(source_.find('}', at_), source_.size());
    add(Kind::config, std::min(close + 1, source_.size()));
    std::size_t word = at_;
    while (is_blank(at(word))) ++word;
    state_ = word > at_ && here("as", word) && is_blank(at(word + 2)) ? State::alias : State::initial;
    return;
  }
  // A word before `@{`, then a word before ` as `, then all up to the end of the statement.
  const std::size_t word_end = until("<>:\n,;@ \t\v\f", at_);
  const std::size_t narrow_end = until("<=>-:\n,;@ \t\v\f", at_);
  if (narrow_end > at_ && source_.compare(narrow_end, 2, "@{") == 0) return add(Kind::actor, narrow_end);
  if (word_end > at_ && is_blank(at(word_end))) {
    std::size_t next = word_end;
    while (is_blank(at(next))) ++next;
    if (here("as", next) && is_blank(at(next + 2))) {
      add(Kind::actor, word_end);
      state_ = State::alias;
      return;
    }
  }
  const std::size_t end = until("<>:\n,;@", at_);
  state_ = State::initial;
  if (end > at_ && (end == source_.size() || at(end) == '\n' || at(end) == ';')) return add(Kind::actor, end);
  // A comment sign inside ends the name before it.
  const std::size_t sign = source_.substr(0, end).rfind('#');
  if (sign != std::string_view::npos && sign > at_) return add(Kind::actor, sign);
  if (line == at_) {
    state_ = State::initial;
    return add(Kind::newline, at_ + 1);
  }
  add(Kind::invalid, line);
}

void Lexer::alias() {
  if (here("as") && !is_word_char(at(at_ + 2))) {
    add(Kind::as, at_ + 2);
    state_ = State::line;
    return;
  }
  state_ = State::initial;
  add(Kind::newline, at_);
}

void Lexer::rest_of_line() {
  state_ = State::initial;
  add(Kind::rest, until("#\n;", at_));
}

bool Lexer::accessible() {
  for (const std::string_view word : {std::string_view("acctitle"), std::string_view("accdescr")}) {
    if (!here(word)) continue;
    std::size_t sign = at_ + word.size();
    while (is_blank(at(sign))) ++sign;
    if (at(sign) == ':') {
      add(Kind::accessible, line_end(sign));
      return true;
    }
    if (at(sign) == '{' && word == "accdescr") {
      add(Kind::accessible, std::min(until("}", sign) + 1, source_.size()));
      return true;
    }
  }
  return false;
}

bool Lexer::keywords() {
  const auto take = [&](const Keyword& which) {
    if (!keyword(which.word)) return false;
    add(which.kind, at_ + which.word.size());
    if (which.opens_line) state_ = State::line;
    if (which.opens_id) state_ = State::id;
    return true;
  };
  for (const Keyword& which : first_keywords) {
    if (take(which)) return true;
  }
  for (const Keyword& which : second_keywords) {
    if (take(which)) return true;
  }
  if (here("title") && (is_blank(at(at_ + 5)) || (at(at_ + 5) == ':' && is_blank(at(at_ + 6))))) {
    const std::size_t text = at_ + (at(at_ + 5) == ':' ? 7 : 6);
    const std::size_t end = until("#\n;", text);
    if (end > text) {
      add(Kind::title, end);
      return true;
    }
  }
  if (accessible()) return true;
  if (keyword("sequencediagram")) return add(Kind::diagram, at_ + 15), true;
  if (keyword("autonumber")) return add(Kind::autonumber, at_ + 10), true;
  if (keyword("off")) return add(Kind::off, at_ + 3), true;
  if (at(at_) == ',') return add(Kind::comma, at_ + 1), true;
  if (at(at_) == ';') return add(Kind::newline, at_ + 1), true;
  return false;
}

// A participant's name in a message: up to what may begin an arrow.
bool Lexer::name() {
  std::size_t end = until("/\\+()<->:\n,;", at_);
  if (end == at_) return false;
  for (;;) {
    const bool over = std::any_of(after_name.begin(), after_name.end(), [&](std::string_view sign) { return here(sign, end); });
    if (over) break;
    std::size_t dashes = end;
    while (at(dashes) == '-') ++dashes;
    const std::size_t next = until("+<->:\n,;", dashes);
    if (next == dashes) break;
    end = next;
  }
  add(Kind::actor, end);
  return true;
}

bool Lexer::arrow() {
  for (const std::string_view sign : arrows) {
    if (!here(sign)) continue;
    add(Kind::arrow, at_ + sign.size());
    return true;
  }
  return false;
}

void Lexer::step() {
  if (at(at_) == '\n' && (state_ == State::initial)) {
    std::size_t end = at_;
    while (at(end) == '\n') ++end;
    return add(Kind::newline, end);
  }
  if (skipped()) return;
  switch (state_) {
    case State::id: return identifier();
    case State::alias: return alias();
    case State::line: return rest_of_line();
    case State::initial: break;
  }
  if (number() || keywords() || name() || arrow()) return;
  if (at(at_) == ':') return add(Kind::text, until("#\n;", at_ + 1));
  if (at(at_) == '+') return add(Kind::plus, at_ + 1);
  if (at(at_) == '-') return add(Kind::minus, at_ + 1);
  if (here("()")) return add(Kind::central, at_ + 2);
  add(Kind::stray, at_ + 1);
}

}  // namespace

std::vector<SequenceWord> sequence_words(std::string_view source) { return Lexer(source).run(); }

std::string description_of(const SequenceWord& word) {
  if (word.kind == SequenceToken::newline) return "the end of the line";
  if (word.kind == SequenceToken::end_of_file) return "the end of the diagram";
  return "`" + std::string(word.text.substr(0, 24)) + "`";
}

}  // namespace shardbook::diagram
