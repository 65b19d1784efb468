// reading/note: what does one page of notes hold?
//
// A choice is a part of the page that cites a place: a section under a heading of its own, or, in a section that is one
// list, an item of it. So notes may be written as headings or as bullets. The closing is the section or paragraph that
// connects the dots. Fences are kept apart: what stands in them is no prose.
#pragma once

#include <string>
#include <vector>

#include "engine/reading/citation.hpp"
#include "engine/reading/words.hpp"

namespace shardbook::reading {

struct Fence {
  std::string kind;                 // "mermaid", "python", ""
  int line = 0;                     // of the first line inside, from 1
  std::vector<std::string> lines;
  bool closed = true;
};

// "87.31 ms (`--model gpt-1.3b --tp 2`)": a time, and the run that has it.
struct Figure {
  double ms = 0;
  std::string run;
  int line = 0;
};

struct Choice {
  std::string title;
  int line = 0, last_line = 0;              // of the note, both included
  std::vector<Citation> citations;
  std::vector<std::string> code_words;      // all of it that names something in the file, in order
  std::vector<std::string> switches, spans; // of this project
  int words = 0;                            // of its prose
};

struct Note {
  std::string name;                         // "fsdp-prefetch.md"
  std::vector<std::string> lines;
  std::vector<bool> in_fence;               // by line: inside a fence, or its marks
  std::vector<Choice> choices;
  std::vector<Fence> fences;
  std::vector<Figure> figures;
  bool has_closing = false;
  int closing_line = 0, closing_words = 0;  // closing_line: its heading, or its first line
  std::string closing;                      // lower case, one string
  int words = 0;                            // of all prose: no headings, fences, citations
};

Note parse_note(std::string name, std::vector<std::string> lines);

// Words of a line of prose: code in backticks is one, a citation none.
int prose_words(std::string_view line);

}  // namespace shardbook::reading
