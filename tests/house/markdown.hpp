// tests/house/markdown: what stands in a markdown file, as far as the rules of the notes ask.
//
// Not a renderer. It knows fenced blocks, headings, links and anchors of the plain markdown that this project
// writes: fences of three backticks, in a list or not, one-line links, `<a id="..."></a>` for anchors.
#pragma once

#include <string>
#include <vector>

namespace shardbook::tests {

struct Link {
  int line = 0;          // counted from 1
  std::string text;      // with its backticks
  std::string target;    // "../engine/base/check.hpp#anchor"
};

struct Fence {
  int line = 0;          // of its begin
  std::string info;      // "span", "mermaid", "sh", ""
  std::vector<std::string> content;
  bool closed = true;
};

struct Markdown {
  std::vector<std::string> headings;   // of all levels, without the #
  std::vector<int> heading_levels;
  std::vector<std::string> ids;        // of explicit anchors, in order
  std::vector<Link> links;             // not those in fences and inline code
  std::vector<Fence> fences;
  std::vector<std::string> prose;      // every line that is in no fence

  // Names that a link may put behind '#': explicit ids, and headings as GitHub spells them.
  std::vector<std::string> anchors() const;
};

Markdown parse_markdown(const std::string& text);

// "When it pays: d" as GitHub's anchor: "when-it-pays-d".
std::string slug(const std::string& heading);

std::vector<std::string> lines_of(const std::string& text);

}  // namespace shardbook::tests
