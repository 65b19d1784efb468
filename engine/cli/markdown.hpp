// cli/markdown: how does a note look in a terminal?
//
// The part of Markdown that the notes use: headings, paragraphs, lists, tables, quotes, code, rules, links,
// emphasis. Headings, emphasis and code are bold or dim on a terminal and plain elsewhere; nothing else depends on it.
// A fenced block `span` holds the name of a span of the engine (excerpts.hpp), which is woven in with its title and
// place; a link to `span:NAME` shows that place. `mermaid` is shown as text, with a remark.
#pragma once

#include <string>
#include <vector>

#include "engine/base/result.hpp"
#include "engine/book/excerpts.hpp"

namespace shardbook::cli {

struct PageOptions {
  int columns = 100;
  bool styled = false;      // bold and dim
};

// The page as lines. Code and tables that are wider than the columns are left as they are.
// Errors: a span that is not there (the nearest is named), a fence that does not end; `name` is the page's.
base::Result<std::vector<std::string>> page_lines(const std::string& markdown, const std::string& name,
                                                  const std::vector<book::Excerpt>& excerpts, const PageOptions& options);

// The text of the first heading, or "".
std::string title_of(const std::string& markdown);

}  // namespace shardbook::cli
