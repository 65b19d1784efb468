// page/document: what does a page say, before anybody knows how wide it is?
//
// A tree of blocks. Inline text is a list of runs: text between two changes of style. A page is parsed once
// (markdown.hpp) and laid out once for a width (flow.hpp). Nothing here knows how it will be drawn.
#pragma once

#include <string>
#include <vector>

namespace shardbook::page {

// Bits of a run's style.
struct Style {
  enum Bits : unsigned { plain = 0, bold = 1, italic = 2, code = 4, strike = 8, math = 16, link = 32 };
};

// Text between two changes of style. A '\n' in it is a line break that the author asked for.
struct Run {
  std::string text;
  unsigned style = Style::plain;
  int link = -1;      // into Document::links
  int raise = 0;      // of formulas: 1 is a superscript, -1 a subscript, 2 a superscript's superscript
};

enum class Alignment { left, centre, right };
enum class Task { none, open, done };

struct Block {
  enum class Kind { heading, paragraph, list_item, code, quote, admonition, table, rule, image, diagram, span, anchor };
  Kind kind = Kind::paragraph;
  int level = 0;                  // of a heading from 1; of a list item its depth from 1
  std::vector<Run> runs;          // heading, paragraph; a list item's first paragraph
  std::vector<Block> children;    // quote, admonition; what a list item holds beside its first paragraph
  std::string language;           // code, span: as the fence says it, or by the source's extension
  std::string title;              // admonition: NOTE TIP IMPORTANT WARNING CAUTION; span: its title; image: alternative text
  std::string target;             // image: path; span: its name; heading, anchor: its id
  std::string text;               // code, diagram, span: the text, lines parted by '\n'
  std::string source_path;        // span: of the file that holds it, from the root; "" if there is no such span
  int source_line = 0;            // span: of its first line there, from 1
  int marker = 0;                 // list item: its number; 0 is a bullet
  Task task = Task::none;         // list item
  bool loose = false;             // list item: of a list with blank lines between its items
  int line = 0;                   // of the page, from 1; for code and diagrams that of the first line inside the fence
  std::vector<std::vector<std::vector<Run>>> cells;   // table: rows, cells, runs; the first row is the header
  std::vector<Alignment> alignment;                   // table: a column each
};

struct Document {
  std::string name;                       // as given, for messages
  std::string title;                      // of the first heading
  std::vector<Block> blocks;
  std::vector<std::string> links;         // targets as written: "rooms/comm.md#x", "lab:...", "span:fsdp.gather"
  std::vector<std::string> problems;      // a sentence each, with page and line
};

// The words of some runs, without their styles.
std::string plain_text(const std::vector<Run>& runs);

}  // namespace shardbook::page
