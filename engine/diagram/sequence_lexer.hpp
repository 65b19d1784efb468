// diagram/sequence_lexer: the words of a sequence diagram, by mermaid's ordered rules.
//
// Facts: mermaid 11.17.2, src/diagrams/sequence/parser/sequenceDiagram.jison. Keywords match in any case.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardbook::diagram {

enum class SequenceToken {
  diagram, newline, number, box, participant, actor_keyword, create, destroy, as, loop, rect, opt, alt, else_, par, and_, critical,
  option, break_, rest, end, left_of, right_of, links, link, properties, details, over, note, activate, deactivate, title,
  autonumber, off, comma, actor, arrow, text, plus, minus, central, config, accessible, stray, invalid, end_of_file
};

struct SequenceWord {
  SequenceToken kind = SequenceToken::invalid;
  std::string_view text;
  std::size_t offset = 0;
};

// All words, the last of them newline and end_of_file. `stray` is a sign without meaning, which mermaid passes over where
// a line may begin. Work is linear.
std::vector<SequenceWord> sequence_words(std::string_view source);

// "the end of the line", "`Alice`": for messages.
std::string description_of(const SequenceWord& word);

}  // namespace shardbook::diagram
