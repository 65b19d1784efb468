// diagram/flowchart_rules: the state and the rules of the flowchart's lexer; only its two files include this.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "engine/diagram/diagram_source.hpp"
#include "engine/diagram/flowchart_lexer.hpp"

namespace shardbook::diagram::flowchart {

enum class State { initial, string, markdown, text, slash_text, ellipse_text, edge_text, thick_text, dotted_text, direction, click,
                   call_name, call_arguments, data, data_string, accessible_line, accessible_block };

// Each rule is asked in mermaid's order; one that fits takes or skips some bytes and says true.
class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  std::vector<FlowWord> run() {
    while (at_ < source_.size() && (words_.empty() || words_.back().kind != FlowToken::invalid)) step();
    if (words_.empty() || words_.back().kind != FlowToken::invalid) {
      // What was opened and does not end, a quote or a bracket, is wrong even at the end of all.
      if (states_.size() > 1) {
        words_.push_back({FlowToken::unclosed, {}, opened_at_.back()});
        return std::move(words_);
      }
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
  void push(State state) {
    states_.push_back(state);
    opened_at_.push_back(at_);
  }
  void pop() {
    if (states_.size() > 1) {
      states_.pop_back();
      opened_at_.pop_back();
    }
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
  std::vector<std::size_t> opened_at_{0};       // where each state began
  std::vector<FlowWord> words_;
  bool header_seen_ = false;
  // Looked up once a line and once a run of non-blanks, so that the work stays linear.
  std::size_t line_end_ = 0;
  std::array<std::size_t, 5> direction_end_{}, direction_begin_{};
  std::size_t run_end_ = 0, run_at_ = 0;
  mutable std::size_t blanks_begin_ = 0, blanks_end_ = 0;
};

}  // namespace shardbook::diagram::flowchart
