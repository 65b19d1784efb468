// page/markdown: Markdown text -> Document.
//
// CommonMark with GitHub's tables, task lists, strikethrough and autolinks, `$formulas$`, and what the notes need
// beside them: a quote that begins with [!NOTE] is an admonition; a line <a id="x"></a> is an anchor (all other
// HTML is text); a fence `span` holds the name of a span of the engine, which is woven in; a fence `mermaid` is a diagram.
// Containers deeper than 24 are flattened into their parent, so that no page can exhaust the stack.
#pragma once

#include <string_view>

#include "engine/book/excerpts.hpp"
#include "viewer/page/document.hpp"

namespace shardbook::page {

// Never fails: what is odd about the page stands in Document::problems. Lines of problems count from `name`'s line 1.
Document parse_markdown(std::string_view text, const std::string& name, const std::vector<book::Excerpt>& excerpts);

// The id that GitHub gives to a heading of that text: lower case, blanks to '-', punctuation dropped.
std::string heading_id(std::string_view heading);

// The longest document that is read, in bytes; a longer one is cut there, and a problem says so.
inline constexpr std::size_t longest_page = 8u << 20;

}  // namespace shardbook::page
