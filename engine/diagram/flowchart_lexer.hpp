// diagram/flowchart_lexer: the words of a flowchart.
//
// Mermaid's lexer takes, at each place, the first of an ordered list of rules that fits, and which rules there are
// depends on what was opened: a bracket, a quote, the text of an edge. Here it is the same, by hand, because what is
// accepted depends on it: "x--x" within a word, "end" as a name, a blank before a quote.
// Facts: mermaid 11.17.2, src/diagrams/flowchart/parser/flow.jison.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::diagram {

enum class FlowToken {
  graph, direction_header, no_direction, subgraph, end, direction, style, link_style, class_def, class_, click, href, call,
  call_arguments, target, default_, interpolate, space, newline, semicolon, end_of_file, number, word, unicode, minus, colon,
  comma, ampersand, star, hash, down, up, class_separator, link, start_link, link_id, edge_text, string, markdown, text, pipe,
  square_begin, square_end, round_begin, round_end, brace_begin, brace_end, stadium_begin, stadium_end, subroutine_begin,
  subroutine_end, cylinder_begin, cylinder_end, double_begin, double_end, ellipse_begin, ellipse_end, slash_begin,
  backslash_begin, slash_end, backslash_end, flag_begin, tag_begin, properties_begin, shape_data, accessible, unclosed, invalid
};

struct FlowWord {
  FlowToken kind = FlowToken::invalid;
  std::string_view text;        // of the source
  std::size_t offset = 0;
};

// All words up to end_of_file, or up to and including the first invalid one. Views of `source`.
std::vector<FlowWord> flowchart_words(std::string_view source);

// "a square bracket", "the end of the line": for messages.
std::string description_of(const FlowWord& word);

}  // namespace shardbook::diagram
