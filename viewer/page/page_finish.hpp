// page/page_finish: what the notes mean beyond Markdown: anchors, admonitions, woven spans, diagrams, headings' ids.
#pragma once

#include <vector>

#include "engine/book/excerpts.hpp"
#include "viewer/page/document.hpp"

namespace shardbook::page {

// Rewrites the blocks of a parsed page in place and fills title and problems.
void finish_page(Document& document, const std::vector<book::Excerpt>& excerpts);

}  // namespace shardbook::page
