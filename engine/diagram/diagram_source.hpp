// diagram/diagram_source: Mermaid text made ready for the parsers, as mermaid's own preprocessing does it.
//
// Front matter, %%{directives}%% and %% comment lines are blanked, never removed, so that line numbers stay. Entities such as
// #quot; are put into a pair of control characters: their ';' ends no statement and their '#' begins no comment.
// Facts of the grammar: mermaid 11.17.2, src/preprocess.ts, src/utils.ts (encodeEntities), src/diagram-api/comments.ts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardbook::diagram {

struct DiagramSource {
  std::string text;        // ends with '\n'
  std::string title;       // of the front matter
  std::vector<std::size_t> line_begin;

  int line_at(std::size_t offset) const;   // from 1
};

DiagramSource prepare_diagram(std::string_view raw);

// What a label shows: entities resolved, <br> and \n as '\n', other tags dropped, each line trimmed. `markdown`: the
// label stood in "`...`", where ** and * and _ are emphasis, which is dropped.
std::string label_text(std::string_view raw, bool markdown = false);

// An entity's character by number or name ("quot", "9829", "#x41"); "" if there is none.
std::string entity_text(std::string_view name);

// ASCII alone, as in mermaid's lexers.
inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
inline bool is_word_char(char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }

std::string_view trimmed(std::string_view text);
void append_utf8(std::string& out, std::uint32_t code);
// The code point at an offset, and moves past it; a byte that is no UTF-8 counts as itself.
std::uint32_t next_code_point(std::string_view text, std::size_t& offset);

}  // namespace shardbook::diagram
