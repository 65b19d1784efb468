// diagram/flowchart_lexer: the order of the rules, keywords and quotes; see flowchart_lexer.hpp. Links and brackets are in
// flowchart_links.cpp.
#include "engine/diagram/flowchart_lexer.hpp"

#include <algorithm>
#include <cctype>

#include "engine/diagram/diagram_source.hpp"
#include "engine/diagram/flowchart_rules.hpp"

namespace shardbook::diagram {

namespace flowchart {

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

}  // namespace flowchart

std::vector<FlowWord> flowchart_words(std::string_view source) { return flowchart::Lexer(source).run(); }

std::string description_of(const FlowWord& word) {
  switch (word.kind) {
    case FlowToken::newline: return "the end of the line";
    case FlowToken::end_of_file: return "the end of the diagram";
    case FlowToken::space: return "a blank";
    case FlowToken::unclosed: return "a quote or bracket that does not end";
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

}  // namespace shardbook::diagram
